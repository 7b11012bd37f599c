package bench

import (
	"context"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// latencyRemoting: one publishing connection that writes when a message is due, and waiting
// consumers.
func latencyRemoting(ctx context.Context, l *ledger, t target, o Options, arrivals *histograms) (take, publish func(context.Context) error, err error) {
	wait := waitingPulls
	if o.Waiting == WaitingPop {
		wait = waitingPops
	}
	take, err = wait(ctx, l, t, o, arrivals)
	return take, func(ctx context.Context) error { return publishRemoting(ctx, l, t, o) }, err
}

// latencyPatience is how long a latency run waits for what does not come.
const latencyPatience = 10 * time.Second

// waitingPulls are one waiting pull on every queue.
func waitingPulls(ctx context.Context, l *ledger, t target, o Options, arrivals *histograms) (func(context.Context) error, error) {
	all, err := pullers(ctx, l, t, o, &histograms{})
	for _, p := range all {
		p.each = arrival(arrivals.one())
	}
	return func(ctx context.Context) error { return consume(ctx, l, all, latencyPatience) }, err
}

// waitingPops are as many waiting pops of all queues as are in flight, and an ack for what
// each brings.
func waitingPops(ctx context.Context, l *ledger, t target, o Options, arrivals *histograms) (func(context.Context) error, error) {
	group, err := t.createGroup(ctx)
	if err != nil {
		return nil, err
	}
	o.Ack = AckBatch
	all, err := poppers(ctx, l, t, o, group)
	for _, p := range all {
		p.each = arrival(arrivals.one())
	}
	return func(ctx context.Context) error { return consume(ctx, l, all, latencyPatience) }, err
}

// publishRemoting writes each message when it is due; answers are read beside it. A message
// that is refused is sent again at once, with the time of that send, and counted.
func publishRemoting(ctx context.Context, l *ledger, t target, o Options) error {
	c, err := dial(ctx, t.broker)
	if err != nil {
		return err
	}
	defer c.net.Close()
	var unused histograms
	o.InFlight = o.Count // every message has a slot of its own
	s := newSender(c, l, t, o, newUniqueKeys(), unused.one())
	reader := &conn{net: c.net, in: c.in}
	repeat := newSender(reader, l, t, o, newUniqueKeys(), unused.one())
	answers := newLoops()
	answers.start(func() error {
		left := l.total
		return reader.loop(ctx, nil, func(a *remoting.Command) (bool, error) {
			if busy(a.Code) {
				l.refused.Add(1)
				repeat.slots[a.Opaque].number = int64(a.Opaque)
				repeat.send(a.Opaque)
				return false, nil
			}
			if a.Code != remoting.ResSuccess {
				return true, refusal(a, "a send")
			}
			l.stored.Add(1)
			left--
			return left == 0, nil
		})
	})
	err = l.pace(ctx, o.Rate, func(number int64) error {
		s.slots[number].number = number
		s.send(int32(number))
		return c.flush()
	})
	if err != nil {
		c.net.Close()
		answers.wait()
		return err
	}
	return answers.wait()
}

// latencyGRPC: calls of their own for publishing, and a few waiting receives.
func latencyGRPC(ctx context.Context, l *ledger, t target, o Options, arrivals *histograms) (take, publish func(context.Context) error, err error) {
	group, err := t.createGroup(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.InFlight, o.Ack = 4, AckBatch
	all, err := receivers(ctx, l, t, o, group)
	if err != nil {
		closeAll(all)
		return nil, nil, err
	}
	for _, r := range all {
		r.each = arrival(arrivals.one())
	}
	take = func(ctx context.Context) error { return receiveAll(ctx, l, all, &histograms{}) }
	publish = func(ctx context.Context) error { return publishGRPC(ctx, l, t, o) }
	return take, publish, nil
}

func publishGRPC(ctx context.Context, l *ledger, t target, o Options) error {
	c, err := dialGRPC(ctx, o, t.topic)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.announceProducer(o); err != nil {
		return err
	}
	var unused histograms
	keys := newUniqueKeys()
	// A few senders take the due messages in turn, so that one slow answer delays no other.
	due := make(chan int64, 64)
	senders := newLoops()
	for range 32 {
		s := newGRPCSender(c, l, t, o, keys, unused.one())
		senders.start(func() error {
			for number := range due {
				if err := s.send(number); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = l.pace(ctx, o.Rate, func(number int64) error {
		select {
		case due <- number:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(due)
	if failed := senders.wait(); failed != nil {
		return failed
	}
	return err
}
