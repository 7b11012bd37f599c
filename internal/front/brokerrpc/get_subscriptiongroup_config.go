package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getSubscriptionGroupConfig(r *transport.Request) {
	var h remoting.GetSubscriptionGroupConfigRequest
	if !s.read(r, &h) {
		return
	}
	g, err := s.b.Groups.GetOrCreate(h.Group)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	cfg := g.Remoting()
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&cfg))
}
