package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) ackMessage(r *transport.Request) {
	var h remoting.AckMessageRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	handle, err := s.delivery(h.Topic, h.QueueID, h.Offset, h.ExtraInfo, h.LiteTopic)
	if err != nil {
		s.refuse(responder, err)
		return
	}
	s.b.Pop.Ack(h.ConsumerGroup, h.Topic, handle, func(err error) { s.done(responder, err) })
}
