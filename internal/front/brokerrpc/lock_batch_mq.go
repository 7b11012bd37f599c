package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/qlock"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) lockBatchMQ(r *transport.Request) {
	var b remoting.LockBatchBody
	if !s.readBody(r, &b) {
		return
	}
	var answer remoting.LockBatchResponseBody
	for _, q := range s.b.Locks.Lock(b.ConsumerGroup, b.ClientID, s.queuesOf(b.MQSet), nil) {
		answer.LockOKMQSet = append(answer.LockOKMQSet, remoting.MessageQueue{Topic: q.Topic, BrokerName: s.b.Name, QueueID: q.QueueID})
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

// queuesOf are those of the queues that are this broker's.
func (s *Server) queuesOf(set []remoting.MessageQueue) []qlock.Queue {
	queues := make([]qlock.Queue, 0, len(set))
	for _, q := range set {
		if q.BrokerName == s.b.Name || q.BrokerName == "" {
			queues = append(queues, qlock.Queue{Topic: q.Topic, QueueID: q.QueueID})
		}
	}
	return queues
}
