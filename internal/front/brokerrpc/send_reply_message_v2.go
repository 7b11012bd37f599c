package brokerrpc

import "github.com/bolidemq/bolide/internal/wire/transport"

func (s *Server) sendReplyMessageV2(r *transport.Request) { s.reply(r, true) }
