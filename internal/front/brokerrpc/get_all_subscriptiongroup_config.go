package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getAllSubscriptionGroupConfig(r *transport.Request) {
	var h remoting.GetAllSubscriptionGroupConfigRequest
	if !s.read(r, &h) {
		return
	}
	table := s.b.Groups.Remoting()
	total := int32(len(table.SubscriptionGroupTable))
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetAllSubscriptionGroupConfigResponse{TotalGroupNum: total}, remoting.Marshal(&table))
}
