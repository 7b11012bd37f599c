package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// timerLead is how long before the first is due all have to be stored.
	timerLead = time.Second
	// pendingFor is how far ahead those are that stay.
	pendingFor = 24 * time.Hour
)

// timers are messages that are stored first and due later.
type timers struct {
	o      Options
	target target
	moments
	ledger *ledger // of those that are received
	first  time.Time
	came   arrivals
	beside *traffic
}

// runTimer stores messages that become due later, at a rate or in one second, and measures
// how late waiting consumers have them. Those that stay pending are stored before; alone,
// storing them is what is measured.
func runTimer(ctx context.Context, o Options) (Result, error) {
	switch {
	case o.Rate > 0 && !o.Together:
		o.Count = o.paced()
	case !o.Together && o.Pending > 0:
		o.Count = o.Pending
	case !o.Together:
		return Result{}, errors.New("without --rate, --together or --pending there is nothing to do")
	}
	if err := o.check(); err != nil {
		return Result{}, err
	}
	var err error
	o.shape.kind = "DELAY"
	w := &timers{o: o, moments: moments{server: o.Server}}
	if w.target, err = o.prepare(ctx); err != nil {
		return Result{}, err
	}
	w.look("before")
	r, err := w.pend(ctx)
	if err == nil && (o.Rate > 0 || o.Together) {
		r, err = w.receive(ctx)
	}
	r.Memory = w.all
	return r, err
}

// pend stores the timers that stay.
func (w *timers) pend(ctx context.Context) (Result, error) {
	o := w.o
	if o.Pending == 0 {
		return Result{}, nil
	}
	r, err := storePending(ctx, w.target, o)
	if err == nil {
		err = pause(ctx, o.Rest)
	}
	w.look("pending")
	return r, err
}

// storePending stores timers that are due in a day, a thousand in each second of it.
func storePending(ctx context.Context, t target, o Options) (Result, error) {
	began := time.Now()
	o.Count = o.Pending
	o.shape = dueAt(func(number int64) time.Time { return began.Add(pendingFor + time.Duration(number)*time.Millisecond) })
	return store(ctx, newLedger(o.Count), t, o, "timers to stay pending")
}

// store sends messages that nobody is to receive, and measures that.
func store(ctx context.Context, l *ledger, t target, o Options, workload string) (Result, error) {
	var h histograms
	m, err := o.measure(l, l.stored.Load, func() error { return send(ctx, l, t, o, &h, time.Time{}) })
	if err != nil {
		return Result{}, err
	}
	r := l.result(workload, o, m, "acknowledged send", &h)
	r.Lost, r.LostFirst, r.Unverified = 0, nil, true
	return r, nil
}

// receive stores the timers that are due soon, to waiting consumers.
func (w *timers) receive(ctx context.Context) (r Result, err error) {
	w.ledger = newLedger(w.o.Count)
	w.ledger.moments = make([]atomic.Int64, w.o.Count)
	var m measured
	if w.beside, err = w.o.traffic(ctx); err == nil {
		m, err = w.measure(ctx)
	}
	beside, failed := w.beside.stop()
	if err = errors.Join(err, failed); err != nil {
		return r, err
	}
	if err := pause(ctx, w.o.Rest); err != nil {
		return r, err
	}
	w.look("after")
	workload := "timers due at a rate"
	if w.o.Together {
		workload = "timers due together"
	}
	r = w.ledger.result(workload, w.o, m, "due time to receive", &w.came.histograms)
	r.Early, r.EarliestMS = w.came.early.Load(), float64(w.came.earliest.Load())/1e6
	r.LastAfter = time.Unix(0, w.came.last.Load()).Sub(w.first).Seconds()
	r.Beside = beside
	return r, nil
}

// measure stores the timers and waits until all have come.
func (w *timers) measure(ctx context.Context) (measured, error) {
	o := w.o
	o.patience = o.Ahead + time.Minute
	take, err := waiting(ctx, w.ledger, w.target, o, &w.came)
	if err != nil {
		return measured{}, err
	}
	return o.measureWaiting(ctx, w.ledger, firstWait, take, w.store)
}

// due is when a message is.
func (w *timers) due(number int64) time.Time {
	if w.o.Together {
		return w.first
	}
	return w.first.Add(time.Duration(number) * time.Second / time.Duration(w.o.Rate))
}

// store sends the timers and returns when the first is due. That is a whole second, so that
// a server with such a grain can be in time.
func (w *timers) store(ctx context.Context) error {
	w.first = time.Now().Add(w.o.Ahead + time.Second).Truncate(time.Second)
	for number := range w.ledger.total {
		w.ledger.moments[number].Store(int64(time.UnixMilli(w.due(number).UnixMilli()).Sub(w.ledger.epoch)))
	}
	o := w.o
	o.shape = dueAt(w.due)
	if err := send(ctx, w.ledger, w.target, o, &histograms{}, time.Time{}); err != nil {
		return err
	}
	left := time.Until(w.first)
	if left < timerLead {
		return fmt.Errorf("storing %d timers took %v: --ahead has to be longer", o.Count, o.Ahead+time.Second-left)
	}
	if o.Pending == 0 {
		w.look("pending")
	}
	if err := pause(ctx, left); err != nil {
		return err
	}
	return w.beside.measured(ctx)
}
