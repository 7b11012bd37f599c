package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/proxy"
)

// SyncLiteSubscription implements v2.MessagingServiceServer.
func (s *Service) SyncLiteSubscription(ctx context.Context, req *v2.SyncLiteSubscriptionRequest) (*v2.SyncLiteSubscriptionResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.SyncLiteSubscriptionResponse{Status: s.status("SyncLiteSubscription", s.syncLite(ctx, req))}, nil
}

// liteActions are the actions by their names, which both protocols share.
var liteActions = map[v2.LiteSubscriptionAction]lite.Action{
	v2.LiteSubscriptionAction_PARTIAL_ADD: lite.PartialAdd, v2.LiteSubscriptionAction_PARTIAL_REMOVE: lite.PartialRemove,
	v2.LiteSubscriptionAction_COMPLETE_ADD: lite.CompleteAdd, v2.LiteSubscriptionAction_COMPLETE_REMOVE: lite.CompleteRemove,
}

func (s *Service) syncLite(ctx context.Context, req *v2.SyncLiteSubscriptionRequest) error {
	id, err := clientID(callerOf(ctx))
	if err != nil {
		return err
	}
	topic, group, err := topicAndGroup(req.GetTopic(), req.GetGroup())
	if err != nil {
		return err
	}
	action, known := liteActions[req.GetAction()]
	if !known {
		return refuse(v2.Code_BAD_REQUEST, "the action %d of a lite subscription is not known", req.GetAction())
	}
	for _, name := range req.GetLiteTopicSet() {
		if err := checkLiteTopic(name); err != nil {
			return err
		}
	}
	sub := proxy.LiteSubscription{Action: action, ClientID: id, Group: group, Topic: topic, Lites: req.GetLiteTopicSet()}
	if sub.From, err = fromOf(req.GetOffsetOption()); err != nil {
		return err
	}
	return s.proxy.SyncLite(ctx, sub)
}

// fromOf is where a group is to go on.
func fromOf(o *v2.OffsetOption) (lite.From, error) {
	switch t := o.GetOffsetType().(type) {
	case nil:
		return lite.From{}, nil
	case *v2.OffsetOption_Policy_:
		switch t.Policy {
		case v2.OffsetOption_LAST:
			return lite.From{}, nil
		case v2.OffsetOption_MIN:
			return lite.From{Kind: lite.FromMin}, nil
		case v2.OffsetOption_MAX:
			return lite.From{Kind: lite.FromMax}, nil
		}
		return lite.From{}, refuse(v2.Code_BAD_REQUEST, "the offset policy %d is not known", t.Policy)
	case *v2.OffsetOption_Offset:
		return positive("offset", lite.FromOffset, t.Offset)
	case *v2.OffsetOption_TailN:
		return positive("tail_n", lite.FromTail, t.TailN)
	case *v2.OffsetOption_Timestamp:
		return positive("timestamp", lite.FromTime, t.Timestamp)
	}
	return lite.From{}, refuse(v2.Code_BAD_REQUEST, "the kind of the offset option is not known")
}

func positive(field string, kind lite.FromKind, v int64) (lite.From, error) {
	if v < 0 {
		return lite.From{}, refuse(v2.Code_BAD_REQUEST, "the offset option's %s is %d, and must not be negative", field, v)
	}
	return lite.From{Kind: kind, Value: v}, nil
}

// checkMode refuses a consumer of lite topics in a group that is bound to none, and one of
// another kind in a group that is. A client that has said nothing of itself is what its group
// is.
func checkMode(c *proxy.Client, g *proxy.Group) error {
	if c == nil || c.Guessed || !c.Settings.Kind.Consumes() || c.Settings.Group != g.Name {
		return nil
	}
	isLite := c.Settings.Kind == proxy.LitePushConsumer || c.Settings.Kind == proxy.LiteSimpleConsumer
	switch {
	case isLite && g.LiteTopic == "":
		return refuse(v2.Code_ILLEGAL_CONSUMER_GROUP, "regular group cannot use LITE mode: %s has no lite.bind.topic (bolide admin group create %s --lite TOPIC sets it)", g.Name, g.Name)
	case !isLite && g.LiteTopic != "":
		return refuse(v2.Code_ILLEGAL_CONSUMER_GROUP, "lite group must use LITE mode: %s is bound to %s", g.Name, g.LiteTopic)
	}
	return nil
}
