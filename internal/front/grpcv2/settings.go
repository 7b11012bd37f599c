package grpcv2

import (
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/proxy"
)

// What clients are told about sending and receiving.
const (
	producerAttempts          = 3
	producerBackoffFirst      = 10 * time.Millisecond
	producerBackoffMax        = time.Second
	producerBackoffMultiplier = 2
)

// settingsOf checks what a client told about itself and translates it.
func settingsOf(in *v2.Settings) (proxy.Settings, error) {
	out := proxy.Settings{Kind: proxy.ClientKind(in.GetClientType())}
	if d := in.GetRequestTimeout(); d != nil {
		out.RequestTimeout = d.AsDuration()
	}
	switch p := in.GetPubSub().(type) {
	case *v2.Settings_Publishing:
		out.Kind = proxy.Producer
		for _, t := range p.Publishing.GetTopics() {
			topic, err := topicName(t)
			if err != nil {
				return out, err
			}
			out.Topics = append(out.Topics, topic)
		}
	case *v2.Settings_Subscription:
		group, err := groupName(p.Subscription.GetGroup())
		if err != nil {
			return out, err
		}
		if !out.Kind.Consumes() {
			return out, refuse(v2.Code_UNRECOGNIZED_CLIENT_TYPE, "a client of type %s has no subscription", in.GetClientType())
		}
		out.Group = group
		for _, e := range p.Subscription.GetSubscriptions() {
			out.Subscriptions = append(out.Subscriptions, proxy.Subscription{
				Topic:      e.GetTopic().GetName(),
				Expression: e.GetExpression().GetExpression(),
				SQL:        e.GetExpression().GetType() == v2.FilterType_SQL,
			})
		}
	default:
		return out, refuse(v2.Code_BAD_REQUEST, "there is no publishing or subscription data in settings")
	}
	return out, nil
}

// mergeSettings is the answer to a client's settings: the same, with every field filled
// in that is the server's to say or that some client needs.
func mergeSettings(in *v2.Settings, g proxy.Group, limits *config.Proxy) *v2.Settings {
	out := proto.Clone(in).(*v2.Settings)
	out.AccessPoint = withScheme(out.AccessPoint)
	if out.RequestTimeout == nil {
		out.RequestTimeout = durationpb.New(defaultRequestTimeout)
	}
	out.Metric = &v2.Metric{}
	switch p := out.GetPubSub().(type) {
	case *v2.Settings_Publishing:
		p.Publishing.MaxBodySize = limits.MaxMessageSize
		p.Publishing.ValidateMessageType = limits.EnableTopicMessageTypeCheck
		out.BackoffPolicy = &v2.RetryPolicy{
			MaxAttempts: producerAttempts,
			Strategy:    exponential(producerBackoffFirst, producerBackoffMax, producerBackoffMultiplier),
		}
	case *v2.Settings_Subscription:
		sub := p.Subscription
		sub.Fifo = proto.Bool(g.FIFO)
		sub.ReceiveBatchSize = proto.Int32(limits.LongPollingBatchSize)
		sub.LongPollingTimeout = durationpb.New(milliseconds(limits.LongPollingMaxTimeMillis))
		sub.LiteSubscriptionQuota = proto.Int32(g.LiteQuota)
		sub.MaxLiteTopicSize = proto.Int32(maxLiteTopic)
		out.BackoffPolicy = consumerBackoff(g, in.GetUserAgent().GetLanguage())
	}
	return out
}

// consumerBackoff is the group's retry policy. The Node client knows no list of times
// and, given one, takes a failed FIFO message to the dead letters at once; it gets an
// exponential policy between the list's ends.
func consumerBackoff(g proxy.Group, language v2.Language) *v2.RetryPolicy {
	p := &v2.RetryPolicy{MaxAttempts: g.MaxAttempts}
	next := g.Backoff.Next
	switch {
	case len(next) == 0:
		p.Strategy = exponential(g.Backoff.Initial, g.Backoff.Max, g.Backoff.Multiplier)
	case language == v2.Language_NODE_JS:
		p.Strategy = exponential(next[0], next[len(next)-1], 2)
	default:
		list := &v2.CustomizedBackoff{Next: make([]*durationpb.Duration, len(next))}
		for i, d := range next {
			list.Next[i] = durationpb.New(d)
		}
		p.Strategy = &v2.RetryPolicy_CustomizedBackoff{CustomizedBackoff: list}
	}
	return p
}

func exponential(first, most time.Duration, multiplier float32) *v2.RetryPolicy_ExponentialBackoff {
	return &v2.RetryPolicy_ExponentialBackoff{ExponentialBackoff: &v2.ExponentialBackoff{
		Initial: durationpb.New(first), Max: durationpb.New(most), Multiplier: multiplier}}
}
