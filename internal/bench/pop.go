package bench

import (
	"context"
	"time"
)

// popRun is the consuming side of a pop run. acknowledge is for AckLater: it acknowledges
// what receive got.
type popRun struct {
	receive, acknowledge func(context.Context, *histograms) error
}

// runPop measures receiving a backlog with invisible times and acknowledging it, in one of
// the ways of AckMode.
func runPop(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	t, l, err := backlog(ctx, o)
	if err != nil {
		return Result{}, err
	}
	group, err := t.createGroup(ctx, nil)
	if err != nil {
		return Result{}, err
	}
	open := popRemoting
	if o.Protocol == GRPC {
		open = popGRPC
	}
	side, err := open(ctx, l, t, o, group)
	if err != nil {
		return Result{}, err
	}
	run, of := side.receive, "receive of a batch"
	if o.Ack == AckLater {
		if err := side.receive(ctx, &histograms{}); err != nil {
			return Result{}, err
		}
		l.rewind()
		run, of = side.acknowledge, "ack"
	}
	var h histograms
	m, err := o.measure(l, l.handled.Load, func() error { return run(ctx, &h) })
	if err != nil {
		return Result{}, err
	}
	if o.Ack == AckNone {
		// So that nothing lapses into what is measured next.
		if err := t.deleteGroup(ctx, group); err != nil {
			return Result{}, err
		}
	}
	return l.result(popWorkloads[o.Ack], o, m, of, &h), nil
}

var popWorkloads = map[AckMode]string{
	AckOne:   "pop, acks one by one",
	AckBatch: "pop, one ack a batch",
	AckNone:  "pop without acks",
	AckLater: "acks one by one, all popped before",
}

const (
	popPoll     = 5 * time.Second
	popPatience = 20 * time.Second
)

// invisible is how long what a run pops stays invisible: where nothing is acknowledged at
// once, longer than any run.
func (o *Options) invisible() time.Duration {
	switch {
	case o.Invisible > 0:
		return o.Invisible
	case o.Ack == AckNone || o.Ack == AckLater:
		return time.Hour
	}
	return time.Minute
}
