package bench

import (
	"context"
	"errors"
	"time"
)

// runPull measures reading a backlog that was sent before, unmeasured. gRPC has no pull; there
// the backlog is received with pop.
func runPull(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	if o.Protocol == GRPC {
		return Result{}, errors.New("pull is a workload of Remoting; gRPC clients receive with pop")
	}
	t, l, err := backlog(ctx, o)
	if err != nil {
		return Result{}, err
	}
	var h histograms
	m, err := o.measure(l, l.handled.Load, func() error {
		return pullRemoting(ctx, l, t, o, &h, 20*time.Second)
	})
	if err != nil {
		return Result{}, err
	}
	return l.result("pull", o, m, "pull of a batch", &h), nil
}

// backlog sends the messages of a run over Remoting.
func backlog(ctx context.Context, o Options) (target, *ledger, error) {
	t, err := o.prepare(ctx)
	if err != nil {
		return t, nil, err
	}
	l := o.ledger(t)
	var h histograms
	o.InFlight = max(o.InFlight, 32)
	return t, l, sendRemoting(ctx, l, t, o, &h, time.Time{})
}
