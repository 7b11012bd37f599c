package bench

import (
	"context"
	"fmt"
	"time"
)

// send sends with the protocol of the options.
func send(ctx context.Context, l *ledger, t target, o Options, h *histograms, limit time.Time) error {
	if o.Protocol == GRPC {
		return sendGRPC(ctx, l, t, o, h, limit)
	}
	return sendRemoting(ctx, l, t, o, h, limit)
}

// runSend measures acknowledged sends. Afterwards, unmeasured, the topic is read back over
// Remoting: every acknowledged message is there, once.
func runSend(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	t, err := o.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := warmUp(ctx, o, t); err != nil {
		return Result{}, err
	}
	t, err = again(ctx, o, t)
	if err != nil {
		return Result{}, err
	}
	l := newLedger(o.Count)
	var h histograms
	var limit time.Time
	m, err := o.measure(l, l.stored.Load, func() error {
		if o.Duration > 0 {
			limit = time.Now().Add(o.Duration)
		}
		return send(ctx, l, t, o, &h, limit)
	})
	if err != nil {
		return Result{}, err
	}
	l.total = l.stored.Load() // fewer than asked for when the time was up first
	if l.total == 0 {
		return Result{}, fmt.Errorf("no message was sent within %v", o.Duration)
	}
	if o.blind() {
		r := l.result("send", o, m, "acknowledged send", &h)
		r.Lost, r.LostFirst, r.Unverified = 0, nil, true
		return r, nil
	}
	var unmeasured histograms
	if err := pullRemoting(ctx, l, t, o, &unmeasured, 30*time.Second); err != nil {
		return Result{}, fmt.Errorf("read back: %w", err)
	}
	return l.result("send", o, m, "acknowledged send", &h), nil
}

// warmUp sends some messages that are not measured.
func warmUp(ctx context.Context, o Options, t target) error {
	if o.Warmup == 0 {
		return nil
	}
	var h histograms
	return send(ctx, newLedger(o.Warmup), t, o, &h, time.Time{})
}

// again makes another topic for the measured part when the first one got warm-up messages.
func again(ctx context.Context, o Options, t target) (target, error) {
	if o.Warmup == 0 {
		return t, nil
	}
	if o.Topic != "" {
		return t, fmt.Errorf("--warmup needs a topic of its own: leave --topic out")
	}
	return o.prepare(ctx)
}

// measured is what was seen while the measured part of a run went on.
type measured struct {
	took   time.Duration
	server *Usage
}

// measure runs the measured part of a run. done is how many messages are through.
func (o Options) measure(l *ledger, done func() int64, run func() error) (m measured, err error) {
	defer o.watch(l, done)()
	used := o.Server.Watch()
	began := time.Now()
	err = run()
	m.took = time.Since(began)
	m.server = used()
	return m, err
}

// watch reports progress until the returned function is called.
func (o Options) watch(l *ledger, done func() int64) (stop func()) {
	ended := make(chan struct{})
	watching := newLoops()
	watching.start(func() error {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return nil
			case <-tick.C:
				o.Progress(done(), l.total)
			}
		}
	})
	return func() {
		close(ended)
		watching.wait()
	}
}
