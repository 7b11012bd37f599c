package bench

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/durationpb"
)

// grpcReceiver receives and acknowledges, one call at a time.
type grpcReceiver struct {
	client *grpcClient
	ledger *ledger
	hist   *hdrhistogram.Histogram
	group  *v2.Resource
	queue  *v2.MessageQueue
	size   int32
	batch  bool

	// each is called for every first delivery with the time it was sent, if set.
	each func(sent time.Time)
}

// receivers connects the receivers of a run and learns the queue that they are to ask for.
func receivers(ctx context.Context, l *ledger, t target, o Options, group string) ([]*grpcReceiver, error) {
	var all []*grpcReceiver
	for range o.Connections {
		c, err := dialGRPC(ctx, o, t.topic)
		if err != nil {
			return all, err
		}
		if err := c.announceConsumer(o, group); err != nil {
			c.close()
			return all, err
		}
		route, err := c.service.QueryRoute(c.ctx, &v2.QueryRouteRequest{Topic: c.topic})
		if err == nil {
			err = ok(route.GetStatus(), "a route query")
		}
		if err != nil {
			c.close()
			return all, err
		}
		broker := route.GetMessageQueues()[0].GetBroker()
		for range o.InFlight {
			all = append(all, &grpcReceiver{
				client: c, ledger: l, group: &v2.Resource{Name: group},
				queue: &v2.MessageQueue{Topic: c.topic, Id: -1, Broker: broker, Permission: v2.Permission_READ_WRITE},
				size:  int32(o.Batch), batch: o.AckBatch,
			})
		}
	}
	return all, nil
}

func closeAll(all []*grpcReceiver) {
	for _, r := range all {
		r.client.close()
	}
}

func popGRPC(ctx context.Context, l *ledger, t target, o Options, group string) (func(context.Context, *histograms) error, error) {
	all, err := receivers(ctx, l, t, o, group)
	if err != nil {
		closeAll(all)
		return nil, err
	}
	return func(ctx context.Context, h *histograms) error {
		return receiveAll(ctx, l, all, h)
	}, nil
}

// receiveAll runs the receivers until every message is acknowledged.
func receiveAll(ctx context.Context, l *ledger, all []*grpcReceiver, h *histograms) error {
	running, watching := newLoops(), newLoops()
	given, stop := make(chan struct{}), make(chan struct{})
	watching.start(func() error {
		defer closeAll(all) // ends the long polls
		defer close(stop)
		return l.await(ctx, given, 20*time.Second)
	})
	for _, r := range all {
		r.hist = h.one()
		running.start(func() error { return r.run(stop) })
	}
	err := running.wait()
	close(given)
	watching.wait()
	return err
}

func (r *grpcReceiver) run(stop <-chan struct{}) error {
	for {
		err := r.round()
		select {
		case <-stop:
			return nil
		default:
		}
		if err != nil {
			return err
		}
	}
}

// round receives once and acknowledges what came.
func (r *grpcReceiver) round() error {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(r.client.ctx, popPoll+5*time.Second)
	defer cancel()
	poll := durationpb.New(popPoll)
	stream, err := r.client.service.ReceiveMessage(ctx, &v2.ReceiveMessageRequest{
		Group: r.group, MessageQueue: r.queue, FilterExpression: everything(), BatchSize: r.size,
		InvisibleDuration: durationpb.New(popInvisible), LongPollingTimeout: poll,
	})
	if err != nil {
		return err
	}
	var acks []*v2.AckMessageEntry
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if s := answer.GetStatus(); s != nil && s.GetCode() != v2.Code_OK && s.GetCode() != v2.Code_MESSAGE_NOT_FOUND {
			if grpcBusy(s) {
				r.ledger.refused.Add(1)
				continue
			}
			return ok(s, "a receive")
		}
		m := answer.GetMessage()
		if m == nil {
			continue
		}
		sent, first := r.ledger.received(m.GetBody())
		if !first {
			continue
		}
		if r.each != nil {
			r.each(sent)
		}
		acks = append(acks, &v2.AckMessageEntry{
			MessageId:     m.GetSystemProperties().GetMessageId(),
			ReceiptHandle: m.GetSystemProperties().GetReceiptHandle(),
		})
	}
	if len(acks) == 0 {
		return nil
	}
	if r.each == nil {
		record(r.hist, time.Since(asked))
	}
	if r.batch {
		return r.ack(acks)
	}
	for i := range acks {
		if err := r.ack(acks[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *grpcReceiver) ack(entries []*v2.AckMessageEntry) error {
	answer, err := r.client.service.AckMessage(r.client.ctx, &v2.AckMessageRequest{
		Group: r.group, Topic: r.client.topic, Entries: entries,
	})
	if err != nil {
		return err
	}
	if err := ok(answer.GetStatus(), "an ack"); err != nil {
		return err
	}
	r.ledger.done(len(entries))
	return nil
}
