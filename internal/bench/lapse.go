package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// lapses follows every message through two deliveries: the first is left to lapse, the
// second is acknowledged. The second one's lateness counts from the due time of the first,
// which the server has set: its clock and the generator's have to agree.
type lapses struct {
	first, again *ledger
	due          []atomic.Int64 // of each first delivery, in milliseconds; 0 before it
	late         histograms
}

const (
	// lapseAfter is how long messages stay invisible before they lapse unless the options say
	// it: longer than a quick server needs to give a million away.
	lapseAfter = 15 * time.Second
	// lapseLead is how long before the due time the measured part begins: what a server does
	// ahead of it is measured, and how it idles before that is not.
	lapseLead = 2 * time.Second
	// hasty is how long before its due time a redelivery is a delivery too many, whatever the
	// clocks.
	hasty = time.Second
)

// runLapse measures how late messages come again that nobody acknowledged: published at the
// run's rate, so that they lapse one by one, or without a rate a backlog that lapses in one
// moment.
func runLapse(ctx context.Context, o Options) (Result, error) {
	if o.Rate > 0 {
		o.Count = o.paced()
	}
	if o.Invisible == 0 {
		o.Invisible = lapseAfter
	}
	if err := o.check(); err != nil {
		return Result{}, err
	}
	switch {
	case o.Protocol != Remoting:
		return Result{}, errors.New("lapse is a workload of Remoting")
	case o.Ack != AckOne && o.Ack != AckBatch:
		return Result{}, fmt.Errorf("--ack %s: what has come again is acknowledged one by one or by the batch", o.Ack)
	}
	t, err := o.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	group, err := t.createGroup(ctx, nil)
	if err != nil {
		return Result{}, err
	}
	first := o.ledger(t)
	s := &lapses{first: first, again: first.twin(), due: make([]atomic.Int64, o.Count)}
	run, workload := s.together, "lapse in one moment"
	if o.Rate > 0 {
		run, workload = s.oneByOne, "lapse one by one"
	}
	m, err := run(ctx, t, o, group)
	if err != nil {
		return Result{}, err
	}
	return s.result(workload, o, m), nil
}

// oneByOne publishes to waiting pops, which give every message back by silence and
// acknowledge it when it comes again.
func (s *lapses) oneByOne(ctx context.Context, t target, o Options, group string) (m measured, err error) {
	all, err := s.poppers(ctx, t, o, group)
	if err != nil {
		return m, err
	}
	return o.measureWaiting(ctx, s.again, firstWait,
		func(ctx context.Context) error { return consume(ctx, s.again, all, o.Invisible+time.Minute) },
		func(ctx context.Context) error { return publish(ctx, s.first, t, o) })
}

// together pops a backlog so that all of it is due in the same moment, and waits for that.
func (s *lapses) together(ctx context.Context, t target, o Options, group string) (m measured, err error) {
	stored := o
	stored.InFlight = max(o.InFlight, 32)
	if err := sendRemoting(ctx, s.first, t, stored, &histograms{}, time.Time{}); err != nil {
		return m, err
	}
	all, err := s.poppers(ctx, t, o, group)
	if err != nil {
		return m, err
	}
	moment := time.Now().Add(o.Invisible)
	for _, p := range all {
		// No pop that asks for so short a time may wait until messages come again.
		p.until, p.pop.PollTime = moment, 100
	}
	if err := consume(ctx, s.first, all, popPatience); err != nil {
		return m, err
	}
	if left := time.Until(moment); left < lapseLead {
		return m, fmt.Errorf("popping %d messages took %v: --invisible has to be longer", o.Count, o.Invisible-left)
	}
	after := o
	after.Invisible = max(o.Invisible, time.Minute)
	if all, err = s.poppers(ctx, t, after, group); err != nil {
		return m, err
	}
	return o.measureWaiting(ctx, s.again, time.Until(moment.Add(-lapseLead)),
		func(ctx context.Context) error { return consume(ctx, s.again, all, o.Invisible+time.Minute) },
		func(context.Context) error { return nil })
}

func (s *lapses) poppers(ctx context.Context, t target, o Options, group string) ([]*popper, error) {
	all, err := poppers(ctx, s.again, t, o, group)
	for _, p := range all {
		p.take = s.taker(s.late.one())
	}
	return all, err
}

// taker counts deliveries and files how late the second ones are.
func (s *lapses) taker(late *hdrhistogram.Histogram) func(*message.Message, receipt.Handle) bool {
	return func(m *message.Message, h receipt.Handle) (ack bool) {
		if m.ReconsumeTimes == 0 {
			if _, first := s.first.received(m.Body); first {
				s.due[numberOf(m.Body)].Store(h.Due())
				s.first.done(1)
			}
			return false
		}
		if _, first := s.again.received(m.Body); !first {
			return false
		}
		number := numberOf(m.Body)
		due := s.due[number].Load()
		if due == 0 {
			return true // its first delivery is lost, and is counted as that
		}
		lateness := time.Since(time.UnixMilli(due))
		if lateness < -hasty {
			s.again.twice(number)
		}
		record(late, lateness)
		return true
	}
}

// result adds up both deliveries.
func (s *lapses) result(workload string, o Options, m measured) Result {
	r := s.again.result(workload, o, m, "due time to redelivery", &s.late)
	r.add(s.first.result(workload, o, m, "", &histograms{}))
	return r
}
