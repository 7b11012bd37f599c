package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// publish sends each message of the ledger when it is due.
func publish(ctx context.Context, l *ledger, t target, o Options) error {
	if o.Protocol == GRPC {
		return publishGRPC(ctx, l, t, o)
	}
	return publishRemoting(ctx, l, t, o, func(*conn, *remoting.Command, time.Time) error { return nil })
}

// pace calls do for every number of the ledger when it is due, and never skips one.
func (o Options) pace(ctx context.Context, l *ledger, do func(number int64) error) error {
	if o.Rate < 1 {
		return errors.New("--rate is at least 1")
	}
	began := time.Now()
	for number := int64(0); number < l.total; number++ {
		due := began.Add(time.Duration(number) * time.Second / time.Duration(o.Rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.until:
			return nil
		default:
		}
		if err := do(number); err != nil {
			return err
		}
	}
	return nil
}

// publishRemoting writes the messages over one connection; answers are read beside that. A
// message that is refused is sent again at once, with the time of that send, and counted. For
// one that is stored stored is called with the answer and the time of the send; what it appends
// to the connection is written.
func publishRemoting(ctx context.Context, l *ledger, t target, o Options, stored func(c *conn, a *remoting.Command, sent time.Time) error) error {
	c, err := dial(ctx, t.broker)
	if err != nil {
		return err
	}
	defer c.net.Close()
	var unused histograms
	keys := newUniqueKeys()
	o.InFlight = o.Count // every message has a slot of its own, which is its number
	s := newSender(c, l, t, o, keys, unused.one())
	o.InFlight = 0
	reader := &conn{net: c.net, in: c.in} // what it writes has a buffer of its own
	repeat := newSender(reader, l, t, o, keys, unused.one())
	repeat.slots = s.slots

	var left atomic.Int64 // to be answered, and one until all are written
	left.Store(1)
	answered := make(chan struct{})
	settle := func() {
		if left.Add(-1) == 0 {
			close(answered)
		}
	}
	answers := newLoops()
	answers.start(func() error {
		return reader.loop(ctx, answered, func(a *remoting.Command) (bool, error) {
			switch {
			case busy(a):
				l.refused.Add(1)
				repeat.send(a.Opaque)
				return false, nil
			case a.Code != remoting.ResSuccess:
				return true, refusal(a, "a send")
			}
			l.stored.Add(1)
			if err := stored(reader, a, s.slots[a.Opaque].sent); err != nil {
				return true, err
			}
			settle()
			return false, nil
		})
	})
	err = o.pace(ctx, l, func(number int64) error {
		left.Add(1)
		s.slots[number].number = number
		s.send(int32(number))
		return c.flush()
	})
	if err != nil {
		c.net.Close()
		answers.wait()
		return err
	}
	settle()
	return answers.wait()
}

// publishGRPC sends with calls of their own.
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
	pacing, failing := context.WithCancel(ctx) // who paces does not wait for senders that have ended
	defer failing()
	for range 32 {
		s := newGRPCSender(c, l, t, o, keys, unused.one())
		senders.start(func() error {
			for number := range due {
				if err := s.send(number); err != nil {
					failing()
					return err
				}
			}
			return nil
		})
	}
	err = o.pace(pacing, l, func(number int64) error {
		select {
		case due <- number:
			return nil
		case <-pacing.Done():
			return pacing.Err()
		}
	})
	close(due)
	if failed := senders.wait(); failed != nil {
		return failed
	}
	return err
}
