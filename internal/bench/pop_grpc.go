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
	ack    AckMode
	hidden *durationpb.Duration // how long what it receives stays invisible

	held []*v2.AckMessageEntry // to be acknowledged later

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
				size:  int32(o.Batch), ack: o.Ack, hidden: durationpb.New(o.invisible()),
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

func popGRPC(ctx context.Context, l *ledger, t target, o Options, group string) (run popRun, err error) {
	all, err := receivers(ctx, l, t, o, group)
	if err != nil {
		closeAll(all)
		return run, err
	}
	run.receive = func(ctx context.Context, h *histograms) error {
		return receiveAll(ctx, l, all, h)
	}
	run.acknowledge = func(ctx context.Context, h *histograms) error {
		again, err := receivers(ctx, l, t, o, group) // the others have hung up
		defer closeAll(again)
		if err != nil {
			return err
		}
		acking := newLoops()
		for i, r := range again {
			r.held, r.hist = all[i].held, h.one()
			acking.start(r.ackHeld)
		}
		return acking.wait()
	}
	return run, nil
}

// receiveAll runs the receivers until every message is acknowledged.
func receiveAll(ctx context.Context, l *ledger, all []*grpcReceiver, h *histograms) error {
	running, watching := newLoops(), newLoops()
	given, stop := make(chan struct{}), make(chan struct{})
	watching.start(func() error {
		defer closeAll(all) // ends the long polls
		defer close(stop)
		return l.await(ctx, given, popPatience)
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
		InvisibleDuration: r.hidden, LongPollingTimeout: poll,
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
	switch r.ack {
	case AckBatch:
		return r.acknowledge(acks)
	case AckLater:
		r.held = append(r.held, acks...)
	case AckOne:
		for i := range acks {
			if err := r.acknowledge(acks[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	r.ledger.done(len(acks))
	return nil
}

// ackHeld acknowledges what the receiver holds, one by one.
func (r *grpcReceiver) ackHeld() error {
	for i := range r.held {
		asked := time.Now()
		if err := r.acknowledge(r.held[i : i+1]); err != nil {
			return err
		}
		record(r.hist, time.Since(asked))
	}
	return nil
}

func (r *grpcReceiver) acknowledge(entries []*v2.AckMessageEntry) error {
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
