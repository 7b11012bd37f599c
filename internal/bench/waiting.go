package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// arrivals files how long after its moment each message comes.
type arrivals struct {
	histograms
	early    atomic.Int64 // came before it
	earliest atomic.Int64 // by how many nanoseconds
	last     atomic.Int64 // when the last one came, in nanoseconds of Unix
}

// one returns the function that files an arrival, for one goroutine.
func (a *arrivals) one() func(moment time.Time) {
	g := a.histograms.one()
	return func(moment time.Time) {
		now := time.Now()
		after := now.Sub(moment)
		if after < 0 {
			a.early.Add(1)
			raise(&a.earliest, int64(-after))
		}
		raise(&a.last, now.UnixNano())
		record(g, after)
	}
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// latencyPatience is how long consumers wait for what does not come, unless a run says it.
const latencyPatience = 20 * time.Second

// firstWait is the time that consumers are given to start their first wait.
const firstWait = time.Second

// waiting are consumers that wait as the options say; take runs them until all messages have
// come.
func waiting(ctx context.Context, l *ledger, t target, o Options, a *arrivals) (take func(context.Context) error, err error) {
	if o.patience == 0 {
		o.patience = latencyPatience
	}
	switch {
	case o.Protocol == GRPC:
		return waitingReceives(ctx, l, t, o, a)
	case o.Waiting == WaitingPop:
		return waitingPops(ctx, l, t, o, a)
	}
	return waitingPulls(ctx, l, t, o, a)
}

// waitingPulls are one waiting pull on every queue.
func waitingPulls(ctx context.Context, l *ledger, t target, o Options, a *arrivals) (func(context.Context) error, error) {
	all, err := pullers(ctx, l, t, o, &histograms{})
	for _, p := range all {
		p.each = a.one()
	}
	return func(ctx context.Context) error { return consume(ctx, l, all, o.patience) }, err
}

// waitingPops are as many waiting pops of all queues as are in flight, and an ack for what
// each brings.
func waitingPops(ctx context.Context, l *ledger, t target, o Options, a *arrivals) (func(context.Context) error, error) {
	group, err := t.createGroup(ctx, nil)
	if err != nil {
		return nil, err
	}
	o.Ack = AckBatch
	all, err := poppers(ctx, l, t, o, group)
	for _, p := range all {
		p.each = a.one()
	}
	return func(ctx context.Context) error { return consume(ctx, l, all, o.patience) }, err
}

// waitingReceives are a few waiting receives, and an ack for what each brings.
func waitingReceives(ctx context.Context, l *ledger, t target, o Options, a *arrivals) (func(context.Context) error, error) {
	group, err := t.createGroup(ctx, nil)
	if err != nil {
		return nil, err
	}
	o.InFlight, o.Ack = 4, AckBatch
	all, err := receivers(ctx, l, t, o, group)
	if err != nil {
		closeAll(all)
		return nil, err
	}
	for _, r := range all {
		r.each = a.one()
	}
	return func(ctx context.Context) error {
		defer closeAll(all)
		return receiveAll(ctx, l, all, &histograms{}, o.patience)
	}, nil
}

// measureWaiting starts consumers, which take, and measures from when they have waited for
// a while: publish, until they have all.
func (o Options) measureWaiting(ctx context.Context, l *ledger, while time.Duration, take, publish func(context.Context) error) (measured, error) {
	taken := taking(ctx, take)
	if err := pause(ctx, while); err != nil {
		return measured{}, taken(err)
	}
	return o.measure(l, l.handled.Load, func() error { return taken(publish(ctx)) })
}

// taking starts consumers. What it returns waits for them, or ends them where there was an
// error, and returns the first one.
func taking(ctx context.Context, take func(context.Context) error) func(err error) error {
	ctx, cancel := context.WithCancel(ctx)
	consumers := newLoops()
	consumers.start(func() error { return take(ctx) })
	return func(err error) error {
		defer cancel()
		if err != nil {
			cancel()
		}
		if taken := consumers.wait(); err == nil {
			err = taken
		}
		return err
	}
}

// pause waits for a while.
func pause(ctx context.Context, while time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(while):
		return nil
	}
}
