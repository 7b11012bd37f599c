package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// RecallMessage implements v2.MessagingServiceServer: it takes back what is to be delivered
// later.
func (s *Service) RecallMessage(ctx context.Context, req *v2.RecallMessageRequest) (*v2.RecallMessageResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	id, err := s.recall(ctx, req)
	return &v2.RecallMessageResponse{Status: s.status("RecallMessage", err), MessageId: id}, nil
}

func (s *Service) recall(ctx context.Context, req *v2.RecallMessageRequest) (id string, err error) {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return "", err
	}
	topic, err := topicName(req.GetTopic())
	if err != nil {
		return "", err
	}
	route, err := s.proxy.Route(ctx, topic)
	if err != nil {
		return "", err
	}
	if !route.Kind.Takes(proxy.KindDelay) {
		return "", refuse(v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
			"TopicMessageType validate failed, the expected type is %s, but actual type is %s: only a topic of that type has messages to recall", route.Kind, proxy.KindDelay)
	}
	type outcome struct {
		id  string
		err error
	}
	answer := make(chan outcome, 1)
	s.proxy.Recall(topic, req.GetRecallHandle(), func(id string, err error) { answer <- outcome{id, err} })
	select {
	case o := <-answer:
		return o.id, o.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
