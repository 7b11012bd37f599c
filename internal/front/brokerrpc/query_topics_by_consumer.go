package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryTopicsByConsumer(r *transport.Request) {
	var h remoting.QueryTopicsByConsumerRequest
	if !s.read(r, &h) {
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.TopicList{TopicList: s.b.Offsets.TopicsOf(h.Group)}))
}
