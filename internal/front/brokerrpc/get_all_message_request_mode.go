package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getAllMessageRequestMode(r *transport.Request) {
	modes := s.b.Admin.Modes()
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&modes))
}
