package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// SyncLiteSubscription implements v2.MessagingServiceServer.
func (s *Service) SyncLiteSubscription(ctx context.Context, req *v2.SyncLiteSubscriptionRequest) (*v2.SyncLiteSubscriptionResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.SyncLiteSubscriptionResponse{Status: s.status("SyncLiteSubscription", s.syncLite(ctx, req))}, nil
}

func (s *Service) syncLite(ctx context.Context, req *v2.SyncLiteSubscriptionRequest) error {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return err
	}
	topic, group, err := topicAndGroup(req.GetTopic(), req.GetGroup())
	if err != nil {
		return err
	}
	if req.GetAction() == v2.LiteSubscriptionAction_PARTIAL_ADD {
		for _, name := range req.GetLiteTopicSet() {
			if err := checkLiteTopic(name); err != nil {
				return err
			}
		}
	}
	cfg, err := s.proxy.Group(ctx, group)
	if err != nil {
		return err
	}
	if cfg.LiteTopic != topic {
		return refuse(v2.Code_ILLEGAL_TOPIC, "lite group %s is bound to topic %q, not to %s", group, cfg.LiteTopic, topic)
	}
	return refuse(v2.Code_NOT_IMPLEMENTED, "lite topics are not served by this version")
}
