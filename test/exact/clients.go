package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/bolidemq/bolide/test/load"
)

// pause is what a client waits before it tries again.
const pause = 50 * time.Millisecond

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// produce sends its share of the rate.
func (r *suite) produce(ctx context.Context) {
	every := time.Duration(float64(time.Second) * float64(r.o.producers) / float64(r.o.rate))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		c, err := load.DialRemoting(ctx, r.place)
		if err != nil {
			rest(ctx, pause)
			continue
		}
		for err == nil && ctx.Err() == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				c.Close()
				return
			}
			n := r.ledger.Next()
			var ok bool
			if ok, err = c.Send(n); ok {
				r.ledger.Stored(n)
			} else {
				r.ledger.SentUnanswered()
			}
		}
		c.Close()
	}
}

// consumer is one client of the group. It connects anew whenever it has lost its server, or
// has gone away itself.
type consumer struct {
	*suite
	random *rand.Rand
	dial   func(context.Context) (load.Consumer, error)
	late   []held // to be acknowledged too late
}

type held struct {
	load.Delivery
	until time.Time
}

func (r *suite) consumer(i int) *consumer {
	c := &consumer{suite: r, random: rand.New(rand.NewPCG(r.o.seed, uint64(100+i)))}
	c.dial = func(ctx context.Context) (load.Consumer, error) {
		return load.DialRemoting(ctx, r.place)
	}
	if i%2 == 1 {
		c.dial = func(ctx context.Context) (load.Consumer, error) {
			return load.DialGRPC(ctx, r.place)
		}
	}
	return c
}

func (c *consumer) draining() bool {
	select {
	case <-c.drains:
		return true
	default:
		return false
	}
}

func (c *consumer) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := c.dial(ctx)
		if err != nil {
			rest(ctx, pause)
			continue
		}
		for c.round(ctx, conn) {
		}
		conn.Close()
		if !c.draining() {
			c.ledger.Disconnect()
		}
		rest(ctx, pause)
	}
}

// round receives once and does something with what came. It reports whether the connection
// is worth another.
func (c *consumer) round(ctx context.Context, conn load.Consumer) bool {
	if r, ok := conn.(*load.Remoting); ok && !c.draining() && c.random.IntN(100) == 0 {
		r.Vanish(8, 3*time.Second)
		return false
	}
	invisible := time.Duration(3000+c.random.IntN(3000)) * time.Millisecond
	life := c.ledger.Life()
	got, err := conn.Receive(1+c.random.IntN(16), invisible, time.Second)
	for _, d := range got {
		c.ledger.Delivered(d.Number, d.Handle, conn.Protocol(), life)
	}
	if err == nil && len(got) == 0 {
		rest(ctx, pause/5) // an answer that is empty at once is a refusal
	}
	if err != nil {
		c.leave(got)
		return false
	}
	return c.tooLate(conn) && c.handle(conn, got)
}

// handle decides on each message. A connection that ends takes the rest with it.
func (c *consumer) handle(conn load.Consumer, got []load.Delivery) bool {
	if c.draining() {
		return c.ack(conn, got)
	}
	var batch []load.Delivery
	for i, d := range got {
		ok := true
		switch chance := c.random.IntN(1000); {
		case chance < 700:
			ok = c.ack(conn, got[i:i+1])
		case chance < 850:
			batch = append(batch, d)
		case chance < 900:
			c.ledger.Did(d.Number, d.Handle, load.Left)
		case chance < 945:
			ok = c.extend(conn, d)
		case chance < 975:
			ok = c.handBack(conn, d)
		case chance < 980:
			c.leave(got[i:])
			c.leave(batch)
			return false
		default:
			c.late = append(c.late, held{d, time.UnixMilli(d.Handle.Due()).Add(time.Duration(c.random.IntN(1500)) * time.Millisecond)})
		}
		if !ok {
			c.leave(got[i+1:])
			c.leave(batch)
			return false
		}
	}
	return len(batch) == 0 || c.ack(conn, batch)
}

// leave goes away with messages in hand.
func (c *consumer) leave(all []load.Delivery) {
	for _, d := range all {
		c.ledger.Did(d.Number, d.Handle, load.CutOff)
	}
}

func (c *consumer) ack(conn load.Consumer, all []load.Delivery) bool {
	_, err := load.Acknowledge(conn, c.ledger, all)
	return err == nil
}

// extend asks for more time and then acknowledges, or forgets to.
func (c *consumer) extend(conn load.Consumer, d load.Delivery) bool {
	for range 1 + c.random.IntN(3) {
		next, err := conn.Change(d, time.Duration(2000+c.random.IntN(4000))*time.Millisecond)
		if err != nil {
			c.leave([]load.Delivery{d})
			return false
		}
		if next == nil {
			return true
		}
		c.ledger.Changed(d.Number, d.Handle, next.Handle)
		d = *next
	}
	if c.random.IntN(4) == 0 {
		c.ledger.Did(d.Number, d.Handle, load.Extended)
		return true
	}
	return c.ack(conn, []load.Delivery{d})
}

// handBack lets others have a message: at once, or in a second where zero is not allowed.
func (c *consumer) handBack(conn load.Consumer, d load.Delivery) bool {
	soon := time.Duration(0)
	if conn.Protocol() == "gRPC" {
		soon = time.Second
	}
	c.ledger.Did(d.Number, d.Handle, load.HandedBack)
	next, err := conn.Change(d, soon)
	if next != nil {
		c.ledger.Changed(d.Number, d.Handle, next.Handle)
	}
	return err == nil
}

// tooLate acknowledges what should have been acknowledged before.
func (c *consumer) tooLate(conn load.Consumer) bool {
	var later []held
	ok := true
	for _, d := range c.late {
		switch {
		case !ok || time.Now().Before(d.until):
			later = append(later, d)
		default:
			ok = c.ack(conn, []load.Delivery{d.Delivery})
		}
	}
	c.late = later
	return ok
}
