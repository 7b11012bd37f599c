package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// queryAssignment says which queues a client consumes and how. When nothing is known of
// the client the list is left out, which tells it to keep what it has.
func (s *Server) queryAssignment(r *transport.Request) {
	var b remoting.QueryAssignmentRequestBody
	if !s.readBody(r, &b) {
		return
	}
	assigned, err := s.b.Admin.Assignment(admin.Ask{Topic: b.Topic, Group: b.ConsumerGroup, ClientID: b.ClientID,
		Strategy: b.StrategyName, Broadcast: b.MessageModel == remoting.Broadcasting})
	answer := remoting.QueryAssignmentResponseBody{Known: err == nil}
	for _, q := range assigned {
		mode := remoting.ModePull
		if q.Pop {
			mode = remoting.ModePop
		}
		answer.MessageQueueAssignments = append(answer.MessageQueueAssignments,
			remoting.MessageQueueAssignment{MessageQueue: s.queue(b.Topic, q.QueueID), Mode: mode})
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
