package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) unregisterClient(r *transport.Request) {
	var h remoting.UnregisterClientRequest
	if !s.read(r, &h) {
		return
	}
	s.b.Clients.Unregister(channelOf(r.Conn), h.ProducerGroup, h.ConsumerGroup)
	s.done(r.Responder(), nil)
}
