package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) notification(r *transport.Request) {
	var h remoting.NotificationRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	expr, err := s.popFilter(h.ConsumerGroup, h.Topic, h.ExpType, h.Exp)
	if err != nil {
		s.refuse(responder, err)
		return
	}
	q := pop.Request{Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueID, Max: 1, PollTime: suspension(h.PollTime), Filter: expr,
		Order: h.Order, AttemptID: h.AttemptID, Peer: &channelOf(r.Conn).peer}
	s.b.Pop.Notification(q, func(n pop.Notice, err error) {
		if err != nil {
			s.refuse(responder, err)
			return
		}
		responder.Reply(remoting.ResSuccess, "", &remoting.NotificationResponse{HAsMsg: n.HasMessages, PollingFull: n.Full}, nil)
	})
}
