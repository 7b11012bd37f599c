package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) setMessageRequestMode(r *transport.Request) {
	var b remoting.SetMessageRequestModeBody
	if !s.readBody(r, &b) {
		return
	}
	s.done(r.Responder(), s.b.Admin.SetMode(b.Topic, b.ConsumerGroup, admin.Mode{Pop: b.Mode == remoting.ModePop, ShareQueues: b.PopShareQueueNum}))
}
