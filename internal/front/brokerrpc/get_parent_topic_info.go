package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getParentTopicInfo(r *transport.Request) {
	var h remoting.GetParentTopicInfoRequest
	if !s.read(r, &h) {
		return
	}
	p, err := s.b.Lite.Parent(h.Topic)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.ParentTopicInfo{Topic: h.Topic, TTL: p.TTL, Groups: p.Groups,
		LmqNum: int32(s.b.Store.Lights()), LiteTopicCount: int32(p.Lites)}))
}
