package crash

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bolidemq/bolide/test/load"
)

const invisible = 3 * time.Second

// produce sends messages of growing numbers until the server is gone.
func produce(ctx context.Context, p load.Place, l *load.Ledger) {
	c, err := load.DialRemoting(ctx, p)
	if err != nil {
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		n := l.Next()
		ok, err := c.Send(n)
		if err != nil {
			return
		}
		if ok {
			l.Stored(n)
		}
	}
}

// kind is what a consumer speaks and whether it acknowledges what came together in one call.
type kind struct{ grpc, batch bool }

// kinds are the consumers of a run, which share the group.
var kinds = []kind{{false, false}, {false, false}, {false, true}, {true, false}, {true, false}, {true, true}, {true, true}}

func (k kind) dial(ctx context.Context, p load.Place) (load.Consumer, error) {
	if k.grpc {
		return load.DialGRPC(ctx, p)
	}
	return load.DialRemoting(ctx, p)
}

// consumer is one of them. Under load it leaves some deliveries alone for their invisible
// time, and changes that time for others; to drain the topic it acknowledges all.
type consumer struct {
	load.Consumer
	kind
	l     *load.Ledger
	drain bool
	seen  int
}

// consume runs a consumer until the server is gone, or, to drain the topic, until nothing has
// come for as long as something may.
func consume(ctx context.Context, t *testing.T, p load.Place, l *load.Ledger, k kind, drain bool) {
	dialed, err := k.dial(ctx, p)
	if err != nil {
		if drain {
			t.Error(err)
		}
		return
	}
	defer dialed.Close()
	c := &consumer{Consumer: dialed, kind: k, l: l, drain: drain}
	for ctx.Err() == nil {
		err := c.turn()
		if err != nil && ctx.Err() == nil && drain {
			t.Errorf("%s: %v", c.Protocol(), err)
		}
		if err != nil {
			return
		}
		if left, quiet := l.Left(); drain && (quiet > 2*longest || left == 0 && quiet > longest) {
			return
		}
	}
}

// longest is how long a delivery that nobody speaks for may stay away.
const longest = load.MinInvisibleGRPC + 2*time.Second

// turn receives once and deals with what came.
func (c *consumer) turn() error {
	life, wait := c.l.Life(), 500*time.Millisecond
	if c.grpc {
		wait = 5 * time.Second
	}
	got, err := c.Receive(16, invisible, wait)
	if err != nil {
		return err
	}
	for _, d := range got {
		c.l.Delivered(d.Number, d.Handle, c.Protocol(), life)
	}
	var together []load.Delivery
	for _, d := range got {
		next, err := c.choose(d)
		if err != nil {
			return err
		}
		if next == nil {
			continue
		}
		if together = append(together, *next); c.batch {
			continue
		}
		if err := c.acknowledge(together); err != nil {
			return err
		}
		together = together[:0]
	}
	return c.acknowledge(together)
}

// choose is the delivery to acknowledge, under the name that it has then; nil for one that
// lapses.
func (c *consumer) choose(d load.Delivery) (*load.Delivery, error) {
	c.seen++
	switch {
	case c.drain:
	case c.seen%7 == 0:
		c.l.Did(d.Number, d.Handle, load.Left)
		return nil, nil
	case c.seen%5 == 0:
		c.l.Did(d.Number, d.Handle, load.Extended)
		changed, err := c.Change(d, time.Second)
		if err != nil || changed == nil {
			return nil, err
		}
		c.l.Changed(d.Number, d.Handle, changed.Handle)
		if c.seen%2 == 0 {
			return nil, nil
		}
		return changed, nil
	}
	return &d, nil
}

func (c *consumer) acknowledge(all []load.Delivery) error {
	accepted, err := load.Acknowledge(c, c.l, all)
	if c.grpc {
		overGRPC.Add(int64(accepted))
	}
	return err
}

// overGRPC counts acknowledgements with OK.
var overGRPC atomic.Int64
