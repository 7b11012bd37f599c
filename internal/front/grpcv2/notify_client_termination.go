package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// NotifyClientTermination implements v2.MessagingServiceServer.
func (s *Service) NotifyClientTermination(ctx context.Context, _ *v2.NotifyClientTerminationRequest) (*v2.NotifyClientTerminationResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.NotifyClientTerminationResponse{Status: s.status("NotifyClientTermination", s.terminate(ctx))}, nil
}

func (s *Service) terminate(ctx context.Context) error {
	id, err := clientID(callerOf(ctx))
	if err != nil {
		return err
	}
	if s.proxy.Leave(id) == nil {
		return errNoSettings
	}
	return nil
}
