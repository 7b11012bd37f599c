package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) updateBrokerConfig(r *transport.Request) {
	list, err := config.ParseProperties(r.Body)
	if err == nil {
		err = s.b.Configure(list)
	}
	s.done(r.Responder(), err)
}
