package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// redriveDeadLetter gives one dead letter another life, or tells whether it has had it.
func (s *Server) redriveDeadLetter(r *transport.Request) {
	var h remoting.RedriveDeadLetterRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	s.b.Admin.Redrive(h.Group, h.QueueID, h.Offset, h.ToTopic, h.Ask, func(before bool, to string, err error) {
		if err != nil {
			s.refuse(responder, err)
			return
		}
		responder.Reply(remoting.ResSuccess, "", &remoting.RedriveDeadLetterResponse{Before: before, Topic: to}, nil)
	})
}
