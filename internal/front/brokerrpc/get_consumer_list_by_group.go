package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getConsumerListByGroup(r *transport.Request) {
	var h remoting.GetConsumerListByGroupRequest
	if !s.read(r, &h) {
		return
	}
	ids := s.b.Clients.ConsumerIDs(h.ConsumerGroup)
	if len(ids) == 0 {
		r.Responder().Reply(remoting.ResSystemError, "no consumer for this group, "+h.ConsumerGroup, nil, nil)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.ConsumerListBody{ConsumerIDList: ids}))
}
