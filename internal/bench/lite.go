package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// What an official client of lite topics says again and again.
const (
	liteBeat = 10 * time.Second
	liteSync = 30 * time.Second
)

// lites are lite topics that exist, each with one subscriber, and sleep; some get messages.
type lites struct {
	o      Options
	target target
	group  string
	moments
	clients []*liteClient
}

// liteClient is a lite push consumer with its part of the lite topics.
type liteClient struct {
	*grpcClient
	group  string
	topics []string
}

func liteName(number int64) string { return "lite-" + strconv.FormatInt(number, 10) }

// runLite makes lite topics, each with a message that its subscriber gets, lets them sleep,
// and measures the time from just before a message is sent to one of the active ones until its
// client has it. All of it goes over gRPC, as lite topics do.
func runLite(ctx context.Context, o Options) (Result, error) {
	o.Count, o.Protocol = o.paced(), GRPC
	switch {
	case o.Active < 1 || o.Active > o.Lites || o.Clients < 1 || o.Clients > o.Lites:
		return Result{}, fmt.Errorf("--active %d and --clients %d are between 1 and --lite-topics %d", o.Active, o.Clients, o.Lites)
	case o.Topic != "":
		return Result{}, errors.New("--topic: a run makes its parent of lite topics itself")
	}
	o.shape.kind, o.Ack = "LITE", AckBatch
	if err := o.check(); err != nil {
		return Result{}, err
	}
	w := &lites{o: o, moments: moments{server: o.Server}}
	w.look("before")
	if err := w.subscribe(ctx); err != nil {
		w.close()
		return Result{}, err
	}
	kept, end := newLoops(), make(chan struct{})
	for _, c := range w.clients {
		kept.start(func() error { return c.keep(end) })
	}
	r, err := w.measured(ctx)
	close(end)
	w.close()
	return r, errors.Join(err, kept.wait())
}

// measured is the run with clients that have subscribed.
func (w *lites) measured(ctx context.Context) (Result, error) {
	first, err := w.first(ctx)
	if err != nil {
		return Result{}, err
	}
	l := w.o.ledger(w.target)
	var came arrivals
	take, err := w.take(l, &came)
	if err != nil {
		return Result{}, err
	}
	o := w.o
	apart := int64(o.Lites / o.Active)
	o.shape = toLite(func(number int64) string { return liteName(number % int64(o.Active) * apart) })
	m, err := o.measureWaiting(ctx, l, o.Rest, take, func(ctx context.Context) error {
		w.look("at rest")
		return publish(ctx, l, w.target, o)
	})
	if err != nil {
		return Result{}, err
	}
	w.look("after")
	r := l.result("lite topics", o, m, "publish to receive", &came.histograms)
	r.add(first)
	r.Memory = w.all
	return r, nil
}

// first gives each lite topic its first message, and with that makes it.
func (w *lites) first(ctx context.Context) (Result, error) {
	o := w.o
	o.Count, o.shape = o.Lites, toLite(liteName)
	l := newLedger(o.Count)
	take, err := w.take(l, &arrivals{})
	if err != nil {
		return Result{}, err
	}
	taken := taking(ctx, take)
	err = taken(sendGRPC(ctx, l, w.target, o, &histograms{}, time.Time{}))
	return l.result("", o, measured{took: time.Since(l.epoch)}, "", &histograms{}), err
}

// subscribe makes the parent and the group, and connects the clients.
func (w *lites) subscribe(ctx context.Context) (err error) {
	o := w.o
	if w.target, err = o.prepare(ctx); err != nil {
		return err
	}
	each := (o.Lites + o.Clients - 1) / o.Clients
	w.group, err = w.target.createGroup(ctx, map[string]string{"lite.bind.topic": w.target.topic, "lite.sub.client.quota": strconv.Itoa(each)})
	if err != nil {
		return err
	}
	for number := 0; number < o.Lites; number += each {
		client, err := dialGRPC(ctx, o, w.target.topic)
		if err != nil {
			return err
		}
		c := &liteClient{grpcClient: client, group: w.group}
		for n := number; n < min(number+each, o.Lites); n++ {
			c.topics = append(c.topics, liteName(int64(n)))
		}
		w.clients = append(w.clients, c)
		if err := c.announceConsumer(o, w.group, v2.ClientType_LITE_PUSH_CONSUMER); err != nil {
			return err
		}
		if err := c.sync(); err != nil {
			return err
		}
	}
	return nil
}

func (w *lites) close() {
	for _, c := range w.clients {
		c.close()
	}
}

// sync says all that the client has subscribed to.
func (c *liteClient) sync() error {
	answer, err := c.service.SyncLiteSubscription(c.ctx, &v2.SyncLiteSubscriptionRequest{
		Action: v2.LiteSubscriptionAction_COMPLETE_ADD, Topic: c.topic, Group: &v2.Resource{Name: c.group}, LiteTopicSet: c.topics,
	})
	if err != nil {
		return err
	}
	return ok(answer.GetStatus(), "a lite subscription")
}

// keep tells the server that the client is there, and what it has subscribed to.
func (c *liteClient) keep(end <-chan struct{}) error {
	beat, sync := time.NewTicker(liteBeat), time.NewTicker(liteSync)
	defer beat.Stop()
	defer sync.Stop()
	for {
		var err error
		select {
		case <-end:
			return nil
		case <-beat.C:
			err = c.beat(c.group, v2.ClientType_LITE_PUSH_CONSUMER)
		case <-sync.C:
			err = c.sync()
		}
		select {
		case <-end:
			return nil
		default:
		}
		if err != nil {
			return err
		}
	}
}

// take lets each client wait with one receive.
func (w *lites) take(l *ledger, a *arrivals) (func(context.Context) error, error) {
	o := w.o
	o.InFlight = 1
	var all []*grpcReceiver
	for _, c := range w.clients {
		of, err := c.receivers(l, o, w.group)
		if err != nil {
			return nil, err
		}
		for _, r := range of {
			r.each = a.one()
			r.lite()
		}
		all = append(all, of...)
	}
	return func(ctx context.Context) error {
		return receiveAll(ctx, l, all, &histograms{}, o.Rest+time.Minute)
	}, nil
}
