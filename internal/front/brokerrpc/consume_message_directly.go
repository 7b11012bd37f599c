package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// consumeMessageDirectly passes a message that is stored here to one consumer, and what
// that made of it back.
func (s *Server) consumeMessageDirectly(r *transport.Request) {
	var h remoting.ConsumeMessageDirectlyRequest
	if !s.read(r, &h) {
		return
	}
	s.b.Admin.ConsumeDirectly(h, s.b.Name, s.passOn(r.Responder()))
}

// passOn answers with what a client has answered.
func (s *Server) passOn(r transport.Responder) func(clients.Answer, error) {
	return func(answer clients.Answer, err error) {
		if err != nil {
			s.refuse(r, err)
			return
		}
		r.Reply(answer.Code, answer.Remark, nil, answer.Body)
	}
}
