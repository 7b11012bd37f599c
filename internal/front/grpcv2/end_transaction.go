package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// EndTransaction implements v2.MessagingServiceServer. No transaction is ever open, since
// transactional messages are refused.
func (s *Service) EndTransaction(ctx context.Context, req *v2.EndTransactionRequest) (*v2.EndTransactionResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.EndTransactionResponse{Status: s.status("EndTransaction", s.endTransaction(ctx, req))}, nil
}

func (s *Service) endTransaction(ctx context.Context, req *v2.EndTransactionRequest) error {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return err
	}
	if _, err := topicName(req.GetTopic()); err != nil {
		return err
	}
	if isBlank(req.GetTransactionId()) {
		return refuse(v2.Code_INVALID_TRANSACTION_ID, "transaction id cannot be empty")
	}
	return refuse(v2.Code_NOT_IMPLEMENTED, "transaction messages are not served by this version")
}
