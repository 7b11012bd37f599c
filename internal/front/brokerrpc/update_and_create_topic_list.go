package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) updateAndCreateTopicList(r *transport.Request) {
	var b remoting.CreateTopicListBody
	if !s.readBody(r, &b) {
		return
	}
	var names []string
	for i := range b.TopicConfigList {
		if err := s.b.Admin.PutTopic(topic.FromRemoting(&b.TopicConfigList[i]), false); err != nil {
			s.refuse(r.Responder(), err)
			return
		}
		names = append(names, b.TopicConfigList[i].TopicName)
	}
	s.announced(r.Responder(), names, nil)
}
