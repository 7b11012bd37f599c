package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getBrokerConsumeStats(r *transport.Request) {
	var h remoting.GetBrokerConsumeStatsRequest
	if !s.read(r, &h) {
		return
	}
	answer := remoting.ConsumeStatsList{BrokerAddr: s.b.StoreHost.String(), ConsumeStatsList: []map[string][]remoting.ConsumeStats{}}
	var of map[string][]remoting.ConsumeStats
	last := ""
	for _, g := range s.b.Admin.BrokerConsumeStats(h.IsOrder) {
		if of == nil || g.Group != last {
			of, last = map[string][]remoting.ConsumeStats{g.Group: {}}, g.Group
			answer.ConsumeStatsList = append(answer.ConsumeStatsList, of)
		}
		if g.Topic == "" {
			continue
		}
		stats := remoting.ConsumeStats{ConsumeTps: g.Rate, OffsetTable: s.offsetTable(g.Progress)}
		for _, p := range g.Progress {
			answer.TotalDiff += p.End - p.Consumed
			answer.TotalInflightDiff += p.InFlight
		}
		of[g.Group] = append(of[g.Group], stats)
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
