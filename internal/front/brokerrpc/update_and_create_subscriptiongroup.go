package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) updateAndCreateSubscriptionGroup(r *transport.Request) {
	b := remoting.DefaultSubscriptionGroupConfig("")
	if !s.readBody(r, &b) {
		return
	}
	s.done(r.Responder(), s.b.Groups.Put(group.FromRemoting(&b)))
}
