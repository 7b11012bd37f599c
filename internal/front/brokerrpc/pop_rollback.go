package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// popRollback is mqadmin's exportPopRecord: Apache RocketMQ writes the records of its
// key-value store as check points, and answers success where it has no such store. Here
// another server goes on from the consumer offsets, which are the lowest not done.
func (s *Server) popRollback(r *transport.Request) {
	r.Responder().Reply(remoting.ResSuccess, "", nil, nil)
}
