package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) updateAndCreateSubscriptionGroupList(r *transport.Request) {
	var b remoting.SubscriptionGroupList
	if !s.readBody(r, &b) {
		return
	}
	for i := range b.GroupConfigList {
		if err := s.b.Groups.Put(group.FromRemoting(&b.GroupConfigList[i])); err != nil {
			s.refuse(r.Responder(), err)
			return
		}
	}
	s.done(r.Responder(), nil)
}
