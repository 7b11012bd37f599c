package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// EndTransaction implements v2.MessagingServiceServer. The decision is stored when it is
// answered.
func (s *Service) EndTransaction(ctx context.Context, req *v2.EndTransactionRequest) (*v2.EndTransactionResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.EndTransactionResponse{Status: s.status("EndTransaction", s.endTransaction(ctx, req))}, nil
}

func (s *Service) endTransaction(ctx context.Context, req *v2.EndTransactionRequest) error {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return err
	}
	topic, err := topicName(req.GetTopic())
	if err != nil {
		return err
	}
	if isBlank(req.GetTransactionId()) {
		return refuse(v2.Code_INVALID_TRANSACTION_ID, "transaction id cannot be empty")
	}
	d := proxy.EndRequest{Topic: topic, MessageID: req.GetMessageId(), TransactionID: req.GetTransactionId()}
	switch req.GetResolution() {
	case v2.TransactionResolution_COMMIT:
		d.Commit = true
	case v2.TransactionResolution_ROLLBACK:
	case v2.TransactionResolution_TRANSACTION_RESOLUTION_UNSPECIFIED:
		return nil // its producer does not know yet and will be asked
	default:
		return refuse(v2.Code_BAD_REQUEST, "resolution is %d, want COMMIT or ROLLBACK", req.GetResolution())
	}
	done := make(chan error, 1)
	s.proxy.EndTransaction(d, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
