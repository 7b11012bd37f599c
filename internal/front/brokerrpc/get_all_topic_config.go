package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getAllTopicConfig(r *transport.Request) {
	var h remoting.GetAllTopicConfigRequest
	if !s.read(r, &h) {
		return
	}
	table := s.b.Topics.Remoting()
	total := int32(len(table.TopicConfigTable))
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetAllTopicConfigResponse{TotalTopicNum: total}, remoting.Marshal(&table))
}
