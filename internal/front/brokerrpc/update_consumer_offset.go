package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) updateConsumerOffset(r *transport.Request) {
	var h remoting.UpdateConsumerOffsetRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	s.b.Pull.Commit(h.ConsumerGroup, h.Topic, h.QueueID, h.CommitOffset, !r.IsOneway(), func(err error) { s.done(responder, err) })
}
