package bench

import "context"

// runLatency publishes at a fixed rate and measures the time from just before a message is
// sent until a waiting consumer has it.
func runLatency(ctx context.Context, o Options) (Result, error) {
	o.Count = o.paced()
	if err := o.check(); err != nil {
		return Result{}, err
	}
	t, err := o.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	l := o.ledger(t)
	var came arrivals
	take, err := waiting(ctx, l, t, o, &came)
	if err != nil {
		return Result{}, err
	}
	m, err := o.measureWaiting(ctx, l, firstWait, take, func(ctx context.Context) error { return publish(ctx, l, t, o) })
	if err != nil {
		return Result{}, err
	}
	return l.result("latency", o, m, "publish to receive", &came.histograms), nil
}
