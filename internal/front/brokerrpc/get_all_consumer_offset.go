package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getAllConsumerOffset(r *transport.Request) {
	table := s.b.Offsets.Remoting()
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&table))
}
