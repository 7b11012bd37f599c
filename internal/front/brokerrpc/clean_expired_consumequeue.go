package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) cleanExpiredConsumeQueue(r *transport.Request) {
	s.done(r.Responder(), s.b.Admin.CleanQueues())
}
