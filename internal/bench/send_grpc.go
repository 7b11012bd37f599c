package bench

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// grpcSender sends numbered messages, one call at a time.
type grpcSender struct {
	client *grpcClient
	ledger *ledger
	hist   *hdrhistogram.Histogram
	keys   uniqueKeys
	queues int64
	shape  shape
	body   []byte
}

func newGRPCSender(c *grpcClient, l *ledger, t target, o Options, keys uniqueKeys, hist *hdrhistogram.Histogram) *grpcSender {
	s := &grpcSender{client: c, ledger: l, hist: hist, keys: keys, queues: int64(t.queues), shape: o.shape, body: make([]byte, o.Size)}
	for i := range s.body {
		s.body[i] = byte('a' + i%26)
	}
	return s
}

func (s *grpcSender) send(number int64) error {
	now := time.Now()
	s.ledger.body(s.body, number, now)
	request := &v2.SendMessageRequest{Messages: []*v2.Message{{
		Topic: s.client.topic,
		SystemProperties: &v2.SystemProperties{
			MessageId:     string(s.keys.append([]byte("01"), number)),
			MessageType:   v2.MessageType_NORMAL,
			BornTimestamp: timestamppb.New(now),
			BornHost:      "bench",
			BodyEncoding:  v2.Encoding_IDENTITY,
			QueueId:       int32(number % s.queues),
		},
		Body: s.body,
	}}}
	if s.shape.fields != nil {
		s.shape.fields(request.Messages[0].SystemProperties, number)
	}
	for {
		answer, err := s.client.service.SendMessage(s.client.ctx, request)
		if err != nil {
			return err
		}
		if answer.GetStatus().GetCode() == v2.Code_OK {
			break
		}
		if !grpcBusy(answer.GetStatus()) {
			return ok(answer.GetStatus(), "a send")
		}
		s.ledger.refused.Add(1)
	}
	record(s.hist, time.Since(now))
	s.ledger.stored.Add(1)
	return nil
}

func sendGRPC(ctx context.Context, l *ledger, t target, o Options, h *histograms, limit time.Time) error {
	all := newLoops()
	keys := newUniqueKeys()
	for range o.Connections {
		c, err := dialGRPC(ctx, o, t.topic)
		if err != nil {
			return err
		}
		defer c.close()
		if err := c.announceProducer(o); err != nil {
			return err
		}
		for range o.InFlight {
			s := newGRPCSender(c, l, t, o, keys, h.one())
			all.start(func() error {
				for ctx.Err() == nil && (limit.IsZero() || time.Now().Before(limit)) {
					number := l.next.Add(1) - 1
					if number >= l.total {
						return nil
					}
					if err := s.send(number); err != nil {
						return err
					}
				}
				return ctx.Err()
			})
		}
	}
	return all.wait()
}
