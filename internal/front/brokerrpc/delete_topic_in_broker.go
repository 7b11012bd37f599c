package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) deleteTopicInBroker(r *transport.Request) {
	var h remoting.DeleteTopicInBrokerRequest
	if !s.read(r, &h) {
		return
	}
	s.done(r.Responder(), s.b.Admin.DeleteTopic(h.Topic))
}
