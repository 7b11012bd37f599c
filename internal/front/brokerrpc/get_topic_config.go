package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getTopicConfig(r *transport.Request) {
	var h remoting.GetTopicConfigRequest
	if !s.read(r, &h) {
		return
	}
	t, ok := s.b.Topics.Get(h.Topic)
	if !ok {
		r.Responder().Reply(remoting.ResTopicNotExist, "No topic in this broker. topic: "+h.Topic, nil, nil)
		return
	}
	cfg := t.Remoting()
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&cfg))
}
