package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) querySubscriptionByConsumer(r *transport.Request) {
	var h remoting.QuerySubscriptionByConsumerRequest
	if !s.read(r, &h) {
		return
	}
	answer := remoting.QuerySubscriptionBody{Group: h.Group, Topic: h.Topic}
	if d, ok := s.b.Clients.Subscription(h.Group, h.Topic); ok {
		answer.SubscriptionData = subscriptionData(d)
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
