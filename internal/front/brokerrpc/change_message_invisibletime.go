package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) changeMessageInvisibleTime(r *transport.Request) {
	var h remoting.ChangeMessageInvisibleTimeRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	handle, err := s.delivery(h.Topic, h.QueueID, h.Offset, h.ExtraInfo, h.LiteTopic)
	if err != nil {
		s.refuse(responder, err)
		return
	}
	s.b.Pop.ChangeInvisible(h.ConsumerGroup, h.Topic, handle, h.InvisibleTime, h.Suspend, func(next receipt.Handle, err error) {
		if err != nil {
			s.refuse(responder, err)
			return
		}
		responder.Reply(remoting.ResSuccess, "", &remoting.ChangeMessageInvisibleTimeResponse{PopTime: next.PopTime, InvisibleTime: next.InvisibleTime, ReviveQid: next.ReviveQueue}, nil)
	})
}
