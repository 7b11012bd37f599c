package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) deleteSubscriptionGroup(r *transport.Request) {
	var h remoting.DeleteSubscriptionGroupRequest
	if !s.read(r, &h) {
		return
	}
	s.done(r.Responder(), s.b.Admin.DeleteGroup(h.GroupName))
}
