package grpcv2

import (
	"context"
	"errors"
	"fmt"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// refusal is a status that this front decided itself.
type refusal struct {
	code    v2.Code
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(code v2.Code, format string, args ...any) error {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// statuses translates what the proxy answers; the first match counts. An empty text means
// the error's own.
var statuses = []struct {
	err  error
	code v2.Code
	text string
}{
	{proxy.ErrTopicNotFound, v2.Code_TOPIC_NOT_FOUND, ""},
	{proxy.ErrGroupNotFound, v2.Code_CONSUMER_GROUP_NOT_FOUND, ""},
	{proxy.ErrNoWritableQueue, v2.Code_FORBIDDEN, "no writable queue"},
	{proxy.ErrNoReadableQueue, v2.Code_FORBIDDEN, "no readable queue"},
	{proxy.ErrForbidden, v2.Code_FORBIDDEN, ""},
	{proxy.ErrIllegalHandle, v2.Code_INVALID_RECEIPT_HANDLE, ""},
	{proxy.ErrExpiredHandle, v2.Code_INVALID_RECEIPT_HANDLE, "receipt handle is expired"},
	{proxy.ErrStaleHandle, v2.Code_INVALID_RECEIPT_HANDLE, ""},
	{proxy.ErrIllegalTransaction, v2.Code_INVALID_TRANSACTION_ID, ""},
	{proxy.ErrDecided, v2.Code_PRECONDITION_FAILED, ""},
	{proxy.ErrMessageTooLarge, v2.Code_MESSAGE_BODY_TOO_LARGE, ""},
	{proxy.ErrDeliveryTime, v2.Code_ILLEGAL_DELIVERY_TIME, ""},
	{proxy.ErrIllegalRecall, v2.Code_BAD_REQUEST, ""},
	{proxy.ErrRecallTooLate, v2.Code_PRECONDITION_FAILED, ""},
	{proxy.ErrIllegalMessage, v2.Code_BAD_REQUEST, ""},
	{proxy.ErrMessageNotFound, v2.Code_MESSAGE_NOT_FOUND, ""},
	{proxy.ErrBusy, v2.Code_TOO_MANY_REQUESTS, ""},
	{proxy.ErrFlushTimeout, v2.Code_MASTER_PERSISTENCE_TIMEOUT, ""},
	{proxy.ErrSlaveTimeout, v2.Code_SLAVE_PERSISTENCE_TIMEOUT, ""},
	{proxy.ErrSlaveUnavailable, v2.Code_HA_NOT_AVAILABLE, ""},
	{proxy.ErrTimeout, v2.Code_PROXY_TIMEOUT, ""},
	{proxy.ErrUnsupported, v2.Code_NOT_IMPLEMENTED, ""},
	{proxy.ErrLiteTopicQuota, v2.Code_LITE_TOPIC_QUOTA_EXCEEDED, ""},
	{proxy.ErrLiteSubscriptionQuota, v2.Code_LITE_SUBSCRIPTION_QUOTA_EXCEEDED, ""},
	{proxy.ErrIllegalLite, v2.Code_ILLEGAL_TOPIC, ""},
	{proxy.ErrUnfitLite, v2.Code_BAD_REQUEST, ""},
	{context.DeadlineExceeded, v2.Code_PROXY_TIMEOUT, ""},
	{context.Canceled, v2.Code_REQUEST_TIMEOUT, ""},
}

// statusOf is the code and the text that err is answered with; known is false for a
// failure of the server, which is to be logged.
func statusOf(err error) (code v2.Code, text string, known bool) {
	if err == nil {
		return v2.Code_OK, "OK", true
	}
	var r *refusal
	if errors.As(err, &r) {
		return r.code, r.message, true
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			if s.text == "" {
				return s.code, err.Error(), true
			}
			return s.code, s.text, true
		}
	}
	return v2.Code_INTERNAL_SERVER_ERROR, err.Error(), false
}

// status is err as the answer's status. A failure of the server is logged here, once.
func (s *Service) status(rpc string, err error) *v2.Status {
	code, text := s.codeOf(rpc, err)
	return &v2.Status{Code: code, Message: text}
}

// codeOf is status without the message.
func (s *Service) codeOf(rpc string, err error) (v2.Code, string) {
	code, text, known := statusOf(err)
	if !known {
		s.log.Error("grpc call failed", "rpc", rpc, "err", err)
	}
	return code, text
}

// ok is the status of what went well. Answers share it: it is never changed.
var ok = &v2.Status{Code: v2.Code_OK, Message: "OK"}
