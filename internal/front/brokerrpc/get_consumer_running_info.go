package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// getConsumerRunningInfo passes the question on to the consumer, and its answer back.
func (s *Server) getConsumerRunningInfo(r *transport.Request) {
	var h remoting.GetConsumerRunningInfoRequest
	if !s.read(r, &h) {
		return
	}
	s.b.Admin.RunningInfo(h, s.passOn(r.Responder()))
}
