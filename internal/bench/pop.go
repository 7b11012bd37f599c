package bench

import (
	"context"
	"time"
)

// runPop measures receiving a backlog with invisible times and acknowledging it, one by one
// or a batch at a time.
func runPop(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	t, l, err := backlog(ctx, o)
	if err != nil {
		return Result{}, err
	}
	group, err := t.createGroup(ctx)
	if err != nil {
		return Result{}, err
	}
	receive := popRemoting
	if o.Protocol == GRPC {
		receive = popGRPC
	}
	run, err := receive(ctx, l, t, o, group)
	if err != nil {
		return Result{}, err
	}
	var h histograms
	watch := o.watch(l, l.handled.Load)
	began := time.Now()
	o.Begin()
	err = run(ctx, &h)
	took := time.Since(began)
	o.End()
	watch()
	if err != nil {
		return Result{}, err
	}
	workload := "pop, acks one by one"
	if o.AckBatch {
		workload = "pop, one ack a batch"
	}
	return l.result(workload, o, took, "receive of a batch", &h), nil
}

const (
	popInvisible = 60 * time.Second
	popPoll      = 5 * time.Second
)
