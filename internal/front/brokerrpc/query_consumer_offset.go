package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryConsumerOffset(r *transport.Request) {
	var h remoting.QueryConsumerOffsetRequest
	if !s.read(r, &h) {
		return
	}
	off, err := s.b.Pull.StartOffset(h.ConsumerGroup, h.Topic, h.QueueID, h.SetZeroIfNotFound.Or(true))
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.QueryConsumerOffsetResponse{Offset: off}, nil)
}
