package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) viewMessageByID(r *transport.Request) {
	var h remoting.ViewMessageByIDRequest
	if !s.read(r, &h) {
		return
	}
	record, err := s.b.Store.ReadAt(h.Offset)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, record)
}
