package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getBrokerRuntimeInfo(r *transport.Request) {
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.KVTable{Table: s.b.Admin.RuntimeInfo()}))
}
