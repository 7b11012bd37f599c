package brokerrpc

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// liteActions are the actions by their names.
var liteActions = map[string]lite.Action{"PARTIAL_ADD": lite.PartialAdd, "PARTIAL_REMOVE": lite.PartialRemove,
	"COMPLETE_ADD": lite.CompleteAdd, "COMPLETE_REMOVE": lite.CompleteRemove}

func (s *Server) liteSubscriptionCtl(r *transport.Request) {
	var b remoting.LiteSubscriptions
	if err := remoting.Unmarshal(r.Body, &b); err != nil || len(b.Set) == 0 {
		r.Responder().Reply(remoting.ResIllegalOperation, "the body holds no lite subscription", nil, nil)
		return
	}
	conn := r.Conn
	for i := range b.Set {
		sub, err := liteSubscription(&b.Set[i])
		if err == nil {
			sub.Unsubscribed = func(name string) {
				// Nobody waits for it: a proxy that is gone has no clients.
				_ = conn.Oneway(remoting.ReqNotifyUnsubscribeLite, &remoting.NotifyUnsubscribeLiteRequest{LiteTopic: name, ConsumerGroup: sub.Group, ClientID: sub.ClientID}, nil)
			}
			err = s.b.Lite.Sync(sub)
		}
		if err != nil {
			s.refuse(r.Responder(), err)
			return
		}
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, nil)
}

func liteSubscription(b *remoting.LiteSubscription) (lite.Subscription, error) {
	action, ok := liteActions[b.Action]
	if !ok {
		return lite.Subscription{}, fmt.Errorf("%w: the action %.40q is not known", lite.ErrIllegal, b.Action)
	}
	s := lite.Subscription{Action: action, ClientID: b.ClientID, Group: b.Group, Topic: b.Topic, Lites: b.LiteTopicSet}
	if s.ClientID == "" {
		return s, fmt.Errorf("%w: the client id is blank", lite.ErrIllegal)
	}
	s.From.Value = b.OffsetOption.Value
	switch b.OffsetOption.Type {
	case "POLICY":
		s.From.Kind = map[int64]lite.FromKind{1: lite.FromMin, 2: lite.FromMax}[b.OffsetOption.Value]
	case "OFFSET":
		s.From.Kind = lite.FromOffset
	case "TAIL_N":
		s.From.Kind = lite.FromTail
	case "TIMESTAMP":
		s.From.Kind = lite.FromTime
	}
	if b.OffsetOption.Type != "POLICY" && b.OffsetOption.Value < 0 {
		return s, fmt.Errorf("%w: the offset option %.40s is %d, and must not be negative", lite.ErrIllegal, b.OffsetOption.Type, b.OffsetOption.Value)
	}
	return s, nil
}
