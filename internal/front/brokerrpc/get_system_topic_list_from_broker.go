package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getSystemTopicListFromBroker(r *transport.Request) {
	var answer remoting.TopicList
	for _, t := range s.b.Topics.All() {
		if s.b.Topics.IsSystem(t.Name) {
			answer.TopicList = append(answer.TopicList, t.Name)
		}
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
