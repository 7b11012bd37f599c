package brokerrpc

import (
	"strings"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getConsumerConnectionList(r *transport.Request) {
	var h remoting.GetConsumerConnectionListRequest
	if !s.read(r, &h) {
		return
	}
	g, ok := s.b.Clients.Group(h.ConsumerGroup)
	if !ok {
		r.Responder().Reply(remoting.ResConsumerNotOnline, "the consumer group["+h.ConsumerGroup+"] not online", nil, nil)
		return
	}
	answer := remoting.ConsumerConnection{ConnectionSet: connectionsOf(g.Members), ConsumeFromWhere: g.From, ConsumeType: g.Type,
		MessageModel: g.Model, SubscriptionTable: make(map[string]remoting.SubscriptionData, len(g.Subscriptions))}
	for i := range g.Subscriptions {
		answer.SubscriptionTable[g.Subscriptions[i].Topic] = *subscriptionData(&g.Subscriptions[i])
	}
	r.Responder().Reply(remoting.ResSuccess, s.conflicts(h.ConsumerGroup), nil, remoting.Marshal(&answer))
}

// conflicts says in a remark what the members of a group disagree about: the answer's body
// has no place for it, and shows one subscription of each topic.
func (s *Server) conflicts(group string) string {
	const most = 8
	list := s.b.Clients.Conflicts(group)
	var parts []string
	for i, c := range list {
		if i == most {
			parts = append(parts, "and more")
			break
		}
		parts = append(parts, c.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return "members subscribe differently: " + strings.Join(parts, "; ")
}

// subscriptionData is the opposite of subscriptionOf.
func subscriptionData(d *clients.Subscription) *remoting.SubscriptionData {
	return &remoting.SubscriptionData{Topic: d.Topic, SubString: d.Expression, ExpressionType: d.Kind,
		TagsSet: d.Tags, CodeSet: d.Codes, SubVersion: d.Version, ClassFilterMode: d.ClassFilter}
}
