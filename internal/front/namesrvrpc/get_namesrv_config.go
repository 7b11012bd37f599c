package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getNamesrvConfig(*transport.Request) (a answer, err error) {
	a.body = config.FormatProperties(config.List(s.table.Config().Get()))
	return a, nil
}
