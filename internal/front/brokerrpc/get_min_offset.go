package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getMinOffset(r *transport.Request) {
	var h remoting.GetMinOffsetRequest
	if !s.read(r, &h) {
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetMinOffsetResponse{Offset: s.b.Store.MinOffset(h.Topic, h.QueueID)}, nil)
}
