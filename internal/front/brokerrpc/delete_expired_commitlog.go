package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) deleteExpiredCommitLog(r *transport.Request) {
	s.done(r.Responder(), s.b.Admin.DeleteExpired())
}
