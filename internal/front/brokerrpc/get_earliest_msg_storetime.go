package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getEarliestMsgStoreTime(r *transport.Request) {
	var h remoting.GetEarliestMsgStoreTimeRequest
	if !s.read(r, &h) {
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetEarliestMsgStoreTimeResponse{Timestamp: s.b.Store.EarliestStoreTime(h.Topic, h.QueueID)}, nil)
}
