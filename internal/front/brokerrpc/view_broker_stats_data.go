package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) viewBrokerStatsData(r *transport.Request) {
	var h remoting.ViewBrokerStatsDataRequest
	if !s.read(r, &h) {
		return
	}
	c, ok := s.b.Admin.Counters.Look(h.StatsName, h.StatsKey)
	if !ok {
		r.Responder().Reply(remoting.ResSystemError, "The stats <"+h.StatsName+"> <"+h.StatsKey+"> not exist", nil, nil)
		return
	}
	f := c.Read()
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.BrokerStatsData{
		StatsMinute: statsItem(f.Minute), StatsHour: statsItem(f.Hour), StatsDay: statsItem(f.Day)}))
}

func statsItem(f admin.Figure) remoting.BrokerStatsItem {
	return remoting.BrokerStatsItem{Sum: f.Sum, Tps: f.PerSecond, AvgPt: f.PerTime}
}
