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
	client  *grpcClient
	ctx     context.Context // of its receives
	cancel  context.CancelFunc
	ledger  *ledger
	hist    *hdrhistogram.Histogram
	group   *v2.Resource
	request *v2.ReceiveMessageRequest
	ack     AckMode

	held []*v2.AckMessageEntry // to be acknowledged later

	// attempts name the receives one by one, if set: those of lite topics are.
	attempts *uniqueKeys
	asked    int64

	// each is called for every first delivery with the moment its time began, if set.
	each func(moment time.Time)
}

// lite makes the receives those of a consumer of lite topics.
func (r *grpcReceiver) lite() {
	keys := newUniqueKeys()
	r.attempts, r.request.FilterExpression = &keys, nil
}

// receivers connects the receivers of a run, InFlight of each client.
func receivers(ctx context.Context, l *ledger, t target, o Options, group string) (all []*grpcReceiver, err error) {
	for range o.Connections {
		c, err := dialGRPC(ctx, o, t.topic)
		if err != nil {
			return all, err
		}
		err = c.announceConsumer(o, group, v2.ClientType_SIMPLE_CONSUMER)
		var of []*grpcReceiver
		if err == nil {
			of, err = c.receivers(l, o, group)
		}
		if err != nil {
			c.close()
			return all, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// receivers makes some of a client that is a consumer, and learns the queue that they are to
// ask for.
func (c *grpcClient) receivers(l *ledger, o Options, group string) (all []*grpcReceiver, err error) {
	route, err := c.service.QueryRoute(c.ctx, &v2.QueryRouteRequest{Topic: c.topic})
	if err == nil {
		err = ok(route.GetStatus(), "a route query")
	}
	if err != nil {
		return nil, err
	}
	for range o.InFlight {
		r := &grpcReceiver{client: c, ledger: l, group: &v2.Resource{Name: group}, ack: o.Ack}
		r.ctx, r.cancel = context.WithCancel(c.ctx)
		r.request = &v2.ReceiveMessageRequest{
			Group: r.group, FilterExpression: everything(), BatchSize: int32(o.Batch),
			MessageQueue:      &v2.MessageQueue{Topic: c.topic, Id: -1, Broker: route.GetMessageQueues()[0].GetBroker(), Permission: v2.Permission_READ_WRITE},
			InvisibleDuration: durationpb.New(o.invisible()), LongPollingTimeout: durationpb.New(popPoll),
		}
		all = append(all, r)
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
		defer closeAll(all)
		return receiveAll(ctx, l, all, h, popPatience)
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

// receiveAll runs the receivers until every message is acknowledged, or none was for the
// length of patience.
func receiveAll(ctx context.Context, l *ledger, all []*grpcReceiver, h *histograms, patience time.Duration) error {
	running, watching := newLoops(), newLoops()
	given, stop := make(chan struct{}), make(chan struct{})
	watching.start(func() error {
		defer func() {
			for _, r := range all {
				r.cancel() // ends its long poll
			}
		}()
		defer close(stop)
		return l.await(ctx, given, patience)
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
	ctx, cancel := context.WithTimeout(r.ctx, popPoll+5*time.Second)
	defer cancel()
	if r.attempts != nil {
		r.asked++
		attempt := string(r.attempts.append(nil, r.asked))
		r.request.AttemptId = &attempt
	}
	stream, err := r.client.service.ReceiveMessage(ctx, r.request)
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
		moment, first := r.ledger.received(m.GetBody())
		if !first {
			continue
		}
		if r.each != nil {
			r.each(moment)
		}
		acks = append(acks, &v2.AckMessageEntry{
			MessageId:     m.GetSystemProperties().GetMessageId(),
			ReceiptHandle: m.GetSystemProperties().GetReceiptHandle(),
			LiteTopic:     m.GetSystemProperties().LiteTopic,
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
