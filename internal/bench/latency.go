package bench

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// runLatency publishes at a fixed rate and measures the time from just before a message is
// sent until a waiting consumer has it.
func runLatency(ctx context.Context, o Options) (Result, error) {
	o.Count = max(1, int(float64(o.Rate)*o.Duration.Seconds()))
	if err := o.check(); err != nil {
		return Result{}, err
	}
	t, err := o.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	l := o.ledger(t)
	var arrivals histograms
	take, publish, err := latencySides(ctx, l, t, o, &arrivals)
	if err != nil {
		return Result{}, err
	}
	took, err := o.measureWaiting(ctx, l, firstWait, take, publish)
	if err != nil {
		return Result{}, err
	}
	return l.result("latency", o, took, "publish to receive", &arrivals), nil
}

// firstWait is the time that consumers are given to start their first wait.
const firstWait = time.Second

// measureWaiting starts consumers, which take, and measures from when they have waited for
// a while: publish, until they have all.
func (o Options) measureWaiting(ctx context.Context, l *ledger, while time.Duration, take, publish func(context.Context) error) (time.Duration, error) {
	consumers := newLoops()
	consumers.start(func() error { return take(ctx) })
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(while):
	}
	return o.measure(l, l.handled.Load, func() error {
		err := publish(ctx)
		if taken := consumers.wait(); err == nil {
			err = taken
		}
		return err
	})
}

// latencySides are the consuming and the publishing half of a latency run.
func latencySides(ctx context.Context, l *ledger, t target, o Options, arrivals *histograms) (take, publish func(context.Context) error, err error) {
	if o.Protocol == GRPC {
		return latencyGRPC(ctx, l, t, o, arrivals)
	}
	return latencyRemoting(ctx, l, t, o, arrivals)
}

// pace calls do for every number of the ledger when it is due, and never skips one.
func (l *ledger) pace(ctx context.Context, rate int, do func(number int64) error) error {
	began := time.Now()
	for number := int64(0); number < l.total; number++ {
		due := began.Add(time.Duration(number) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := do(number); err != nil {
			return err
		}
	}
	return nil
}

// arrival returns the function that files an arrival in a histogram of its own.
func arrival(g *hdrhistogram.Histogram) func(sent time.Time) {
	return func(sent time.Time) { record(g, time.Since(sent)) }
}
