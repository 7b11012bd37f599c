package brokerrpc

import "github.com/bolidemq/bolide/internal/wire/transport"

func (s *Server) litePullMessage(r *transport.Request) { s.pull(r, true) }
