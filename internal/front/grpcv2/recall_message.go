package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// RecallMessage implements v2.MessagingServiceServer. No handle is ever given out, since
// messages for a time of delivery are refused.
func (s *Service) RecallMessage(ctx context.Context, req *v2.RecallMessageRequest) (*v2.RecallMessageResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.RecallMessageResponse{Status: s.status("RecallMessage", s.recall(ctx, req))}, nil
}

func (s *Service) recall(ctx context.Context, req *v2.RecallMessageRequest) error {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return err
	}
	topic, err := topicName(req.GetTopic())
	if err != nil {
		return err
	}
	route, err := s.proxy.Route(ctx, topic)
	if err != nil {
		return err
	}
	if !route.Kind.Takes(proxy.KindDelay) {
		return wrongKind(route.Kind, proxy.KindDelay)
	}
	return refuse(v2.Code_NOT_IMPLEMENTED, "recall is not served by this version")
}
