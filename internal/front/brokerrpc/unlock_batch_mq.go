package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) unlockBatchMQ(r *transport.Request) {
	var b remoting.LockBatchBody
	if !s.readBody(r, &b) {
		return
	}
	s.b.Locks.Unlock(b.ConsumerGroup, b.ClientID, s.queuesOf(b.MQSet))
	s.done(r.Responder(), nil)
}
