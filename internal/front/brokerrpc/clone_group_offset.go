package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) cloneGroupOffset(r *transport.Request) {
	var h remoting.CloneGroupOffsetRequest
	if !s.read(r, &h) {
		return
	}
	s.done(r.Responder(), s.b.Admin.CloneOffsets(admin.Clone{From: h.SrcGroup, To: h.DestGroup, Topic: h.Topic, Offline: h.Offline}))
}
