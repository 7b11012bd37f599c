package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryTopicConsumeByWho(r *transport.Request) {
	var h remoting.QueryTopicConsumeByWhoRequest
	if !s.read(r, &h) {
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.GroupList{GroupList: s.b.Admin.GroupsOf(h.Topic)}))
}
