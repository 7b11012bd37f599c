package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// invokeBrokerToGetConsumerStatus asks a group's members where they are in a topic.
func (s *Server) invokeBrokerToGetConsumerStatus(r *transport.Request) {
	var h remoting.InvokeBrokerToGetConsumerStatusRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	s.b.Admin.ConsumerStatus(h.Topic, h.Group, h.ClientAddr, func(of map[string]map[remoting.MessageQueue]int64, err error) {
		if err != nil {
			s.refuse(responder, err)
			return
		}
		responder.Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.ConsumerStatusBody{ConsumerTable: of}))
	})
}
