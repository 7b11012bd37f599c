package grpcv2

import (
	"cmp"
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// ForwardMessageToDeadLetterQueue implements v2.MessagingServiceServer. FIFO clients call
// it when they have tried a message as often as the group allows.
func (s *Service) ForwardMessageToDeadLetterQueue(ctx context.Context, req *v2.ForwardMessageToDeadLetterQueueRequest) (*v2.ForwardMessageToDeadLetterQueueResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	if err := s.forward(ctx, req); err != nil {
		return &v2.ForwardMessageToDeadLetterQueueResponse{Status: s.status("ForwardMessageToDeadLetterQueue", err)}, nil
	}
	return &v2.ForwardMessageToDeadLetterQueueResponse{Status: ok}, nil
}

func (s *Service) forward(ctx context.Context, req *v2.ForwardMessageToDeadLetterQueueRequest) error {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return err
	}
	topic, group, err := topicAndGroup(req.GetTopic(), req.GetGroup())
	if err != nil {
		return err
	}
	h, err := parseHandle(req.GetReceiptHandle())
	if err != nil {
		return err
	}
	h.Lite = cmp.Or(h.Lite, req.GetLiteTopic())
	if h.LogOffset == receipt.NoLogOffset {
		return refuse(v2.Code_INVALID_RECEIPT_HANDLE, "the receipt handle has no log offset")
	}
	answer := make(chan error, 1)
	s.proxy.DeadLetter(group, topic, h, func(err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
