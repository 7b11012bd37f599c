package grpcv2

import (
	"cmp"
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// ChangeInvisibleDuration implements v2.MessagingServiceServer.
func (s *Service) ChangeInvisibleDuration(ctx context.Context, req *v2.ChangeInvisibleDurationRequest) (*v2.ChangeInvisibleDurationResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	h, err := s.changeInvisible(ctx, req)
	if err != nil {
		return &v2.ChangeInvisibleDurationResponse{Status: s.status("ChangeInvisibleDuration", err)}, nil
	}
	return &v2.ChangeInvisibleDurationResponse{Status: ok, ReceiptHandle: h.String()}, nil
}

func (s *Service) changeInvisible(ctx context.Context, req *v2.ChangeInvisibleDurationRequest) (h receipt.Handle, err error) {
	if _, err = clientID(callerOf(ctx)); err != nil {
		return h, err
	}
	topic, group, err := topicAndGroup(req.GetTopic(), req.GetGroup())
	if err != nil {
		return h, err
	}
	c := proxy.ChangeRequest{Group: group, Topic: topic, Invisible: req.GetInvisibleDuration().AsDuration(), Suspend: req.GetSuspend()}
	if err = checkInvisible(c.Invisible, 0, milliseconds(s.limits.MaxInvisibleTimeMills)); err != nil {
		return h, err
	}
	if c.Handle, err = parseHandle(req.GetReceiptHandle()); err != nil {
		return h, err
	}
	c.Handle.Lite = cmp.Or(c.Handle.Lite, req.GetLiteTopic())
	type answer struct {
		h   receipt.Handle
		err error
	}
	answers := make(chan answer, 1)
	s.proxy.ChangeInvisible(c, func(h receipt.Handle, err error) { answers <- answer{h, err} })
	select {
	case a := <-answers:
		return a.h, a.err
	case <-ctx.Done():
		return h, ctx.Err()
	}
}
