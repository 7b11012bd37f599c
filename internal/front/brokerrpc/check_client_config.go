package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) checkClientConfig(r *transport.Request) {
	var b remoting.CheckClientBody
	if !s.readBody(r, &b) {
		return
	}
	var err error
	if d := b.SubscriptionData; d != nil {
		_, err = s.b.Pull.Compile(d.ExpressionType, d.SubString)
	}
	s.done(r.Responder(), err)
}
