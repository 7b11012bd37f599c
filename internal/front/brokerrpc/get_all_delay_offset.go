package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getAllDelayOffset(r *transport.Request) {
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.DelayOffsetTable{OffsetTable: s.b.Timer.Offsets()}))
}
