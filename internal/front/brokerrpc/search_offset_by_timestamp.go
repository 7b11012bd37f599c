package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) searchOffsetByTimestamp(r *transport.Request) {
	var h remoting.SearchOffsetByTimestampRequest
	if !s.read(r, &h) {
		return
	}
	upper := h.BoundaryType == "UPPER" || h.BoundaryType == "upper"
	off := s.b.Store.OffsetByTime(h.Topic, h.QueueID, h.Timestamp, upper)
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.SearchOffsetByTimestampResponse{Offset: off}, nil)
}
