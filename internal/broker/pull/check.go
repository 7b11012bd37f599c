package pull

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/filter"
)

// Sentinels; what was wrong exactly is wrapped around them.
var (
	ErrBrokerUnreadable  = errors.New("the broker does not allow reading")
	ErrLiteOff           = errors.New("the broker does not serve lite pull consumers")
	ErrGroupNotFound     = errors.New("subscription group does not exist")
	ErrGroupDisabled     = errors.New("the group may not consume")
	ErrTopicNotFound     = errors.New("topic does not exist")
	ErrTopicUnreadable   = errors.New("the topic may not be read")
	ErrQueueIllegal      = errors.New("illegal queue id")
	ErrFilterIllegal     = errors.New("the subscription can not be read")
	ErrFilterOff         = errors.New("the broker does not filter by this kind of expression")
	ErrGroupOffline      = errors.New("the group has no member and no subscription here")
	ErrBroadcastOff      = errors.New("the group may not consume by broadcast")
	ErrForbidden         = errors.New("the group is forbidden to read the topic")
	ErrNotSubscribed     = errors.New("the group does not subscribe to the topic")
	ErrSubscriptionOlder = errors.New("the subscription here is older than the consumer's")
	ErrActiveOff         = errors.New("the broker does not serve pull consumers")
	ErrBusy              = errors.New("too many pulls wait")
	ErrNoOffset          = errors.New("no offset is stored")
)

// check runs the checks of a pull up to its filter, in the protocol's order.
func (p *Puller) check(r *Request) (*group.Config, *topic.Config, error) {
	if p.o.Broker.Get().BrokerPermission&topic.PermRead == 0 {
		return nil, nil, ErrBrokerUnreadable
	}
	if r.Lite && !p.o.Broker.Get().LitePullMessageEnable {
		return nil, nil, fmt.Errorf("%w (litePullMessageEnable is off)", ErrLiteOff)
	}
	g, err := p.o.Groups.GetOrCreate(r.Group)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrGroupNotFound, r.Group, err)
	}
	if !g.ConsumeEnable {
		return nil, nil, fmt.Errorf("%w: %s", ErrGroupDisabled, r.Group)
	}
	t, ok := p.o.Topics.Get(r.Topic)
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("%w: %s", ErrTopicNotFound, r.Topic)
	case !t.Readable():
		return nil, nil, fmt.Errorf("%w: %s", ErrTopicUnreadable, r.Topic)
	case r.QueueID < 0 || r.QueueID >= t.ReadQueues:
		return nil, nil, fmt.Errorf("%w: queueId[%d] of topic %s, which has %d queues to read, group %s",
			ErrQueueIllegal, r.QueueID, r.Topic, t.ReadQueues, r.Group)
	}
	return g, t, nil
}

// filter is the expression that r is to be filtered by: its own, or that of the group's
// subscription.
func (p *Puller) filter(r *Request, g *group.Config, first bool) (*filter.Expression, error) {
	kind, model, online := p.o.Clients.Model(r.Group)
	if p.o.Broker.Get().RejectPullConsumerEnable && (!online || kind == clients.ConsumeActively) {
		return nil, fmt.Errorf("%w: group %s", ErrActiveOff, r.Group)
	}
	if p.o.Groups.Forbidden(r.Group, r.Topic)&group.ForbiddenRead != 0 {
		return nil, fmt.Errorf("%w: %s, topic %s", ErrForbidden, r.Group, r.Topic)
	}
	if r.Subscribed {
		return p.requested(r, first)
	}
	if model == clients.Broadcasting && !g.ConsumeBroadcast {
		return nil, fmt.Errorf("%w: %s", ErrBroadcastOff, r.Group)
	}
	sub, ok := p.o.Clients.Subscription(r.Group, r.Topic)
	switch {
	case !ok && !online:
		return nil, fmt.Errorf("%w: %s", ErrGroupOffline, r.Group)
	case !ok:
		return nil, fmt.Errorf("%w: %s, topic %s", ErrNotSubscribed, r.Group, r.Topic)
	case sub.Version < r.SubVersion:
		return nil, fmt.Errorf("%w: %s, topic %s: %d is older than %d", ErrSubscriptionOlder, r.Group, r.Topic, sub.Version, r.SubVersion)
	}
	return p.Compile(sub.Kind, sub.Expression)
}

// requested compiles the filter that came with the request, and makes it known as a
// subscription of its group, which may have no member at this broker.
func (p *Puller) requested(r *Request, first bool) (*filter.Expression, error) {
	e, err := p.Compile(r.Kind, r.Expression)
	if err == nil && first {
		p.o.Clients.Passing(r.Group, clients.Subscription{Topic: r.Topic, Expression: r.Expression, Kind: r.Kind,
			Tags: e.Tags(), Codes: e.CodeSet(), Version: r.SubVersion})
	}
	return e, err
}

// Compile reads a subscription's expression, or says why it can't be served.
func (p *Puller) Compile(kind, text string) (*filter.Expression, error) {
	if kind != "" && kind != filter.KindTag && !p.o.Broker.Get().EnablePropertyFilter {
		return nil, fmt.Errorf("%w: %s (enablePropertyFilter is off)", ErrFilterOff, kind)
	}
	return p.CompileAny(kind, text)
}

// CompileAny is Compile whatever enablePropertyFilter says: it is for pulls alone, as in
// Apache RocketMQ.
func (p *Puller) CompileAny(kind, text string) (*filter.Expression, error) {
	e, err := p.filters.Compile(kind, text)
	switch {
	case errors.Is(err, filter.ErrUnsupported):
		return nil, fmt.Errorf("%w: %w", ErrFilterOff, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFilterIllegal, err)
	}
	return e, nil
}
