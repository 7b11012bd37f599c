package brokerrpc

import (
	"strings"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getConsumeStats(r *transport.Request) {
	var h remoting.GetConsumeStatsRequest
	if !s.read(r, &h) {
		return
	}
	topics := strings.FieldsFunc(h.TopicList, func(c rune) bool { return c == ';' })
	progress := s.b.Admin.ConsumeStats(h.ConsumerGroup, h.Topic, topics)
	answer := remoting.ConsumeStats{OffsetTable: s.offsetTable(progress), ConsumeTps: s.b.Admin.GroupRate(h.ConsumerGroup, progress)}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

// offsetTable is progress in the protocol's form, where what is in flight is said as an
// offset: for POP it is no place in the queue, only as far from Consumed as it has to be.
func (s *Server) offsetTable(list []admin.Progress) map[remoting.MessageQueue]remoting.OffsetWrapper {
	of := make(map[remoting.MessageQueue]remoting.OffsetWrapper, len(list))
	for _, p := range list {
		of[s.queue(p.Topic, p.QueueID)] = remoting.OffsetWrapper{BrokerOffset: p.End, ConsumerOffset: p.Consumed,
			PullOffset: p.Consumed + p.InFlight, LastTimestamp: p.LastStore}
	}
	return of
}
