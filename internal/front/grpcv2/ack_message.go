package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// AckMessage implements v2.MessagingServiceServer. All entries go to the broker in one
// call, whose acks are committed together.
func (s *Service) AckMessage(ctx context.Context, req *v2.AckMessageRequest) (*v2.AckMessageResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	errs, err := s.ackMessage(ctx, req)
	if err != nil {
		return &v2.AckMessageResponse{Status: s.status("AckMessage", err)}, nil
	}
	entries := req.GetEntries()
	resp := &v2.AckMessageResponse{Entries: make([]*v2.AckMessageResultEntry, len(entries))}
	results := make([]v2.AckMessageResultEntry, len(entries))
	codes := make([]v2.Code, len(entries))
	for i, e := range entries {
		st := ok
		if errs[i] != nil {
			st = s.status("AckMessage", errs[i])
		}
		r := &results[i]
		r.MessageId, r.ReceiptHandle, r.Status = e.GetMessageId(), e.GetReceiptHandle(), st
		resp.Entries[i], codes[i] = r, st.GetCode()
	}
	resp.Status = overall(codes, "ack message result is empty")
	if len(codes) > 0 && resp.Status.Code != v2.Code_OK && resp.Status.Code != v2.Code_MULTIPLE_RESULTS {
		resp.Status.Message = results[0].Status.GetMessage()
	}
	return resp, nil
}

// ackMessage returns one error per entry, nil where it is acknowledged.
func (s *Service) ackMessage(ctx context.Context, req *v2.AckMessageRequest) ([]error, error) {
	if _, err := clientID(ctx); err != nil {
		return nil, err
	}
	topic, group, err := topicAndGroup(req.GetTopic(), req.GetGroup())
	if err != nil {
		return nil, err
	}
	entries := req.GetEntries()
	errs := make([]error, len(entries))
	handles := make([]receipt.Handle, 0, len(entries))
	index := make([]int, 0, len(entries)) // of the entry that a handle is from
	for i, e := range entries {
		h, err := parseHandle(e.GetReceiptHandle())
		if err != nil {
			errs[i] = err
			continue
		}
		handles, index = append(handles, h), append(index, i)
	}
	if len(handles) == 0 {
		return errs, nil
	}
	answer := make(chan []error, 1)
	s.proxy.Ack(group, topic, handles, func(results []error) { answer <- results })
	// The broker answers when the acks are as durable as they should be. A caller that
	// has gone meanwhile is not waited for, its acks count all the same.
	select {
	case results := <-answer:
		for k, err := range results {
			errs[index[k]] = err
		}
		return errs, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// parseHandle reads a receipt handle; whatever is no handle has the status of one that is
// not valid any more, so that no client tries it again.
func parseHandle(text string) (receipt.Handle, error) {
	h, err := receipt.Parse(text)
	if err != nil {
		return h, refuse(v2.Code_INVALID_RECEIPT_HANDLE, "%s", err)
	}
	return h, nil
}
