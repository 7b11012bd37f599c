package brokerrpc

import (
	"strings"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getConsumeStats(r *transport.Request) {
	var h remoting.GetConsumeStatsRequest
	if !s.read(r, &h) {
		return
	}
	topics := strings.FieldsFunc(h.TopicList, func(c rune) bool { return c == ';' })
	if h.Topic != "" {
		topics = append(topics, h.Topic)
	}
	answer := remoting.ConsumeStats{OffsetTable: make(map[remoting.MessageQueue]remoting.OffsetWrapper)}
	for _, p := range s.b.Admin.ConsumeStats(h.ConsumerGroup, topics) {
		answer.OffsetTable[s.queue(p.Topic, p.QueueID)] = remoting.OffsetWrapper{BrokerOffset: p.End, ConsumerOffset: p.Consumed,
			PullOffset: p.Pulled, LastTimestamp: p.LastStore}
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
