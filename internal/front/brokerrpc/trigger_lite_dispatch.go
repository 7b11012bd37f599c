package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) triggerLiteDispatch(r *transport.Request) {
	var h remoting.TriggerLiteDispatchRequest
	if !s.read(r, &h) {
		return
	}
	s.done(r.Responder(), s.b.Lite.Trigger(h.Group, h.ClientID))
}
