package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) consumerSendMsgBack(r *transport.Request) {
	var h remoting.ConsumerSendMsgBackRequest
	if !s.read(r, &h) {
		return
	}
	b := publish.SendBack{Group: h.Group, Offset: h.Offset, DelayLevel: h.DelayLevel, OriginMsgID: h.OriginMsgID,
		UnitMode: h.UnitMode, MaxReconsume: -1}
	if h.MaxReconsumeTimes.Set && r.Version >= versionOfOwnLimit {
		b.MaxReconsume = h.MaxReconsumeTimes.Value
	}
	responder := r.Responder()
	s.b.Publish.SendBack(b, func(err error) { s.done(responder, err) })
}
