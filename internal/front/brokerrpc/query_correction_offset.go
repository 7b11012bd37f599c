package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryCorrectionOffset(r *transport.Request) {
	var h remoting.QueryCorrectionOffsetRequest
	if !s.read(r, &h) {
		return
	}
	answer := remoting.QueryCorrectionOffsetBody{CorrectionOffsets: s.b.Admin.CorrectionOffsets(h.Topic, h.CompareGroup, h.FilterGroups)}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
