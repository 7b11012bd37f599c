package brokerrpc

import "github.com/bolidemq/bolide/internal/wire/transport"

func (s *Server) sendMessageV2(r *transport.Request) { s.send(r, true) }
