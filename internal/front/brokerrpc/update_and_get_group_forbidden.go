package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// updateAndGetGroupForbidden says whether a group may read a topic, after changing it
// where the request has readable.
func (s *Server) updateAndGetGroupForbidden(r *transport.Request) {
	var h remoting.UpdateAndGetGroupForbiddenRequest
	if !s.read(r, &h) {
		return
	}
	if h.Readable.Set {
		if err := s.b.Groups.ForbidReading(h.Group, h.Topic, !h.Readable.Value); err != nil {
			s.refuse(r.Responder(), err)
			return
		}
	}
	answer := remoting.GroupForbidden{Group: h.Group, Topic: h.Topic, Readable: s.b.Groups.Forbidden(h.Group, h.Topic)&group.ForbiddenRead == 0}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
