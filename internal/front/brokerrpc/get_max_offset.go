package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getMaxOffset(r *transport.Request) {
	var h remoting.GetMaxOffsetRequest
	if !s.read(r, &h) {
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetMaxOffsetResponse{Offset: s.b.Store.MaxOffset(h.Topic, h.QueueID)}, nil)
}
