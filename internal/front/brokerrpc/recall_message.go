package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) recallMessage(r *transport.Request) {
	var h remoting.RecallMessageRequest
	responder := r.Responder()
	if err := r.Decode(&h); err != nil {
		s.refuseSend(responder, err)
		return
	}
	s.b.Wheel.Recall(h.Topic, h.RecallHandle, h.ProducerGroup, func(id string, err error) {
		if err != nil {
			s.refuseSend(responder, err)
			return
		}
		responder.Reply(remoting.ResSuccess, "", &remoting.RecallMessageResponse{MsgID: id}, nil)
	})
}
