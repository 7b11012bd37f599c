package bench

import (
	"context"
	"errors"
)

// runIdle leaves half messages undecided and timers pending, and looks at what the server
// then uses although nobody asks it for anything.
func runIdle(ctx context.Context, o Options) (Result, error) {
	switch {
	case o.Protocol != Remoting:
		return Result{}, errTransactions
	case o.Duration <= 0:
		return Result{}, errors.New("--duration has to be longer than nothing")
	}
	o.Count = max(o.Transactions, o.Pending, 1)
	if err := o.check(); err != nil {
		return Result{}, err
	}
	m := moments{server: o.Server}
	m.look("before")
	left := o
	for _, kind := range []struct {
		count int
		shape
		store func(context.Context, target, Options) (Result, error)
	}{{o.Transactions, half, storeHalf}, {o.Pending, shape{kind: "DELAY"}, storePending}} {
		if kind.count == 0 {
			continue
		}
		left.shape, left.Topic = kind.shape, ""
		t, err := left.prepare(ctx)
		if err != nil {
			return Result{}, err
		}
		if _, err := kind.store(ctx, t, left); err != nil {
			return Result{}, err
		}
	}
	if err := pause(ctx, o.Rest); err != nil {
		return Result{}, err
	}
	m.look("at rest")
	nothing := newLedger(o.Transactions + o.Pending)
	idle, err := o.measure(nothing, nothing.stored.Load, func() error { return pause(ctx, o.Duration) })
	if err != nil {
		return Result{}, err
	}
	return Result{Workload: "idle", Protocol: o.Protocol, Messages: nothing.total, Seconds: idle.took.Seconds(),
		Unverified: true, Memory: m.all, Server: idle.usage(max(nothing.total, 1))}, nil
}

// storeHalf stores half messages that nobody decides.
func storeHalf(ctx context.Context, t target, o Options) (Result, error) {
	o.Count, o.shape = o.Transactions, half
	return store(ctx, newLedger(o.Count), t, o, "half messages to stay open")
}
