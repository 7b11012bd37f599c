// Package clock is the time that the protocol can see: invisible times, delays,
// back-offs, check-backs and expiries ask it, and nothing else does. In a server it is
// the machine's clock; a test may move it with Advance.
//
// Invariants: Now never runs backwards and never stands still: when the machine's clock is
// set back, it goes on from where it was, at the pace of the time that passes; Advance
// stops at every due time on its way and goes on only when the work that was due there is
// done.
//
// Neighbours: domain packages hold a *Clock and one Alarm per loop. Sockets, flushes,
// long-poll deadlines and presence use package time plainly.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock is the machine's time plus what tests have advanced it by. Its zero value is not
// usable; call New.
type Clock struct {
	mu struct {
		sync.Mutex
		offset time.Duration
		// The last reading at which the machine's clock was not behind, and when that was.
		// While it is behind, time goes on from here: if it stood still, nothing would
		// lapse until the machine's clock had caught up, which may take hours.
		last   int64
		lastAt time.Time
		alarms map[*Alarm]struct{}
		idle   *sync.Cond // signalled when an alarm's owner goes back to waiting
	}
	advancing sync.Mutex // one Advance at a time
}

// New returns a clock that shows the machine's time.
func New() *Clock {
	c := &Clock{}
	c.mu.alarms = make(map[*Alarm]struct{})
	c.mu.idle = sync.NewCond(&c.mu.Mutex)
	c.mu.lastAt = time.Now()
	c.mu.last = c.mu.lastAt.UnixMilli()
	return c
}

// NowMilli is the protocol's time in milliseconds since 1970.
func (c *Clock) NowMilli() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

// Now is NowMilli as a time.Time.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.NowMilli()) }

func (c *Clock) nowLocked() int64 {
	at := time.Now()
	now := at.Add(c.mu.offset).UnixMilli()
	if going := c.mu.last + at.Sub(c.mu.lastAt).Milliseconds(); now < going {
		return going
	}
	c.mu.last, c.mu.lastAt = now, at
	return now
}

// Step is what happens to c when somebody sets the machine's clock by d, forwards or
// backwards. Unlike Advance it waits for nobody.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowLocked()
	c.mu.offset += d
	for a := range c.mu.alarms {
		a.poke()
	}
}

// Alarm is one loop's next due time. The owner calls Set and Wait in turn; other
// goroutines may call Earlier to bring the due time forward.
type Alarm struct {
	clock   *Clock
	due     int64 // 0 = nothing due; guarded by clock.mu
	waiting bool  // the owner is inside Wait; guarded by clock.mu
	wake    chan struct{}
}

// NewAlarm registers a loop with the clock, so that Advance waits for its work. The
// owner must call Stop when the loop ends.
func (c *Clock) NewAlarm() *Alarm {
	a := &Alarm{clock: c, wake: make(chan struct{}, 1), waiting: true}
	c.mu.Lock()
	c.mu.alarms[a] = struct{}{}
	c.mu.Unlock()
	return a
}

// Set replaces the due time (milliseconds since 1970); 0 means that nothing is due.
func (a *Alarm) Set(due int64) {
	a.clock.mu.Lock()
	a.due = due
	a.clock.mu.Unlock()
	a.poke()
}

// Earlier brings the due time forward to due if it is later than that or unset.
func (a *Alarm) Earlier(due int64) {
	a.clock.mu.Lock()
	moved := a.due == 0 || due < a.due
	if moved {
		a.due = due
	}
	a.clock.mu.Unlock()
	if moved {
		a.poke()
	}
}

// Wait returns nil when the due time has come, and clears it; the owner is then busy
// until it calls Wait again, and Advance waits for that. It returns the context's error
// when that ends first.
func (a *Alarm) Wait(ctx context.Context) error {
	c := a.clock
	for {
		c.mu.Lock()
		a.waiting = true
		now := c.nowLocked()
		if a.due != 0 && a.due <= now {
			a.due = 0
			a.waiting = false
			c.mu.Unlock()
			return nil
		}
		c.mu.idle.Broadcast()
		var timer *time.Timer
		var ring <-chan time.Time
		if a.due != 0 {
			timer = time.NewTimer(time.Duration(a.due-now) * time.Millisecond)
			ring = timer.C
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-ring:
		}
		if timer != nil {
			timer.Stop()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Stop takes the alarm out of the clock.
func (a *Alarm) Stop() {
	c := a.clock
	c.mu.Lock()
	delete(c.mu.alarms, a)
	c.mu.idle.Broadcast()
	c.mu.Unlock()
}

func (a *Alarm) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Advance moves the clock by d, from due time to due time, and returns when all work
// that fell due on the way is done.
func (c *Clock) Advance(d time.Duration) {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	c.mu.Lock()
	target := c.nowLocked() + d.Milliseconds()
	for {
		next := target
		for a := range c.mu.alarms {
			if a.due != 0 && a.due < next {
				next = a.due
			}
		}
		if now := c.nowLocked(); next > now {
			c.mu.offset += time.Duration(next-now) * time.Millisecond
			c.mu.last += next - now
		}
		for a := range c.mu.alarms {
			a.poke()
		}
		for c.busyLocked() {
			c.mu.idle.Wait()
		}
		if c.nowLocked() >= target {
			break
		}
	}
	c.mu.Unlock()
}

// busyLocked reports whether some owner has work that is due or in hand.
func (c *Clock) busyLocked() bool {
	now := c.nowLocked()
	for a := range c.mu.alarms {
		if !a.waiting || (a.due != 0 && a.due <= now) {
			return true
		}
	}
	return false
}
