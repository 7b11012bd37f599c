package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) heartBeat(r *transport.Request) {
	var b remoting.HeartbeatData
	if !s.readBody(r, &b) {
		return
	}
	if b.ClientID != "" {
		channelOf(r.Conn).holder = b.ClientID
	}
	h := clients.Heartbeat{
		Client:      clients.Client{ID: b.ClientID, Language: byte(r.Language), Version: r.Version, Channel: channelOf(r.Conn)},
		Fingerprint: b.HeartbeatFingerprint, WithoutSubscriptions: b.WithoutSub,
	}
	for i := range b.ProducerDataSet {
		h.Producers = append(h.Producers, b.ProducerDataSet[i].GroupName)
	}
	for i := range b.ConsumerDataSet {
		h.Consumers = append(h.Consumers, consumerOf(&b.ConsumerDataSet[i]))
	}
	responder := r.Responder()
	s.b.Clients.Heartbeat(h, func(res clients.Result) {
		responder.Reply(remoting.ResSuccess, "", &heartbeatAnswer{changed: res.SubscriptionsNeeded}, nil)
	})
}

func consumerOf(d *remoting.ConsumerData) clients.Consumer {
	c := clients.Consumer{Group: d.GroupName, Type: d.ConsumeType, Model: d.MessageModel, From: d.ConsumeFromWhere, Unit: d.UnitMode}
	for i := range d.SubscriptionDataSet {
		c.Subscriptions = append(c.Subscriptions, subscriptionOf(&d.SubscriptionDataSet[i]))
	}
	return c
}

func subscriptionOf(d *remoting.SubscriptionData) clients.Subscription {
	return clients.Subscription{Topic: d.Topic, Expression: d.SubString, Kind: d.ExpressionType, Tags: d.TagsSet, Codes: d.CodeSet,
		Version: d.SubVersion, ClassFilter: d.ClassFilterMode}
}

// heartbeatAnswer is two ext fields that no other answer has.
type heartbeatAnswer struct{ changed bool }

// Fields names the fields.
func (h *heartbeatAnswer) Fields(v *remoting.Visitor) {
	yes := true
	v.Bool("IS_SUPPORT_HEART_BEAT_V2", &yes, remoting.Required)
	v.Bool("IS_SUB_CHANGE", &h.changed, remoting.Required)
}
