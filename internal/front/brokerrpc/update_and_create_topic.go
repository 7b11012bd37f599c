package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) updateAndCreateTopic(r *transport.Request) {
	var h remoting.UpdateAndCreateTopicRequest
	if !s.read(r, &h) {
		return
	}
	attributes, err := config.ParseAttributes(h.Attributes)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	s.announced(r.Responder(), []string{h.Topic}, s.b.Admin.PutTopic(&topic.Config{Name: h.Topic, ReadQueues: h.ReadQueueNums, WriteQueues: h.WriteQueueNums,
		Perm: h.Perm, FilterType: h.TopicFilterType, SysFlag: h.TopicSysFlag, Order: h.Order, Attributes: attributes}, h.Force))
}
