package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getTopicStatsInfo(r *transport.Request) {
	var h remoting.GetTopicStatsInfoRequest
	if !s.read(r, &h) {
		return
	}
	queues, err := s.b.Admin.TopicStats(h.Topic)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	answer := remoting.TopicStatsTable{OffsetTable: make(map[remoting.MessageQueue]remoting.TopicOffset, len(queues))}
	for _, q := range queues {
		answer.OffsetTable[s.queue(h.Topic, q.QueueID)] = remoting.TopicOffset{MinOffset: q.Min, MaxOffset: q.Max, LastUpdateTimestamp: q.LastStored}
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

// queue names one of this broker's queues.
func (s *Server) queue(topic string, id int32) remoting.MessageQueue {
	return remoting.MessageQueue{Topic: topic, BrokerName: s.b.Name, QueueID: id}
}
