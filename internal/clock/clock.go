// Package clock is the time that the protocol can see: invisible times, delays,
// back-offs, check-backs and expiries ask it, and nothing else does. In a server it is
// the machine's clock; a test may move it with Advance.
//
// Invariants: Now never runs backwards, never stands still and is never behind Wall: when
// the machine's clock is set back, it goes on from where it was, a little slower than time
// passes, until that has caught up, so what is to take ten seconds never takes less. This is of
// one process: the next one goes on from there only if that is credible. Wall is
// what the machine's clock shows, for times that people have named: it follows every step.
// When the machine's clock was stepped, all alarms know within a second of Watch. Advance
// stops at every due time on its way and goes on only when the work that was due there is done.
//
// Neighbours: domain packages hold a *Clock and one Alarm per loop; broker runs Watch, and
// it, storage and pop tell with Reach what an earlier process has seen.
// Sockets, flushes, long-poll deadlines and presence use package time plainly.
package clock

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
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
		// How far the machine's clock was ahead of the time that has passed since began, when
		// the alarms heard of it last. What sleeps, sleeps by the time that passes.
		began  time.Time
		lead   int64
		alarms map[*Alarm]struct{}
		idle   *sync.Cond // signalled when an alarm's owner goes back to waiting
	}
	advancing sync.Mutex // one Advance at a time
	moving    atomic.Bool
}

// New returns a clock that shows the machine's time.
func New() *Clock {
	c := &Clock{}
	c.mu.alarms = make(map[*Alarm]struct{})
	c.mu.idle = sync.NewCond(&c.mu.Mutex)
	c.mu.lastAt = time.Now()
	c.mu.last = c.mu.lastAt.UnixMilli()
	c.mu.began, c.mu.lead = c.mu.lastAt, c.mu.last
	return c
}

// stepped is by how many milliseconds the machine's clock may leave the time that passes
// until that is a step.
const stepped = 20

// lookEvery is how often Watch looks at the clock.
const lookEvery = time.Second

// A clock that is ahead of the machine's loses one millisecond in slower: an hour that the
// machine's clock was set back is made up for in slower hours.
const slower = 16

// Credible is how far ahead of the machine's clock an earlier process may have been. The
// largest step that is made in earnest is out of a wrong time zone; who was further ahead than a
// day had a clock that was wrong, and a year of it would take sixteen to make up for.
const Credible = 24 * time.Hour

// MakesUpIn is how long it takes until a clock that is ahead of the machine's is not any more.
func MakesUpIn(ahead time.Duration) time.Duration {
	if ahead > math.MaxInt64/slower {
		return math.MaxInt64
	}
	return slower * ahead
}

// NowMilli is the protocol's time in milliseconds since 1970.
func (c *Clock) NowMilli() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

// Now is NowMilli as a time.Time.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.NowMilli()) }

// WallMilli is what the machine's clock shows, in milliseconds since 1970. It runs backwards
// where that does. It is for times that people have named, by clocks that are right: who
// waits for one compares it with this, and is not early because the machine's clock was
// wrong once.
func (c *Clock) WallMilli() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, wall := c.readLocked()
	return wall
}

// Read is NowMilli and WallMilli of one moment.
func (c *Clock) Read() (now, wall int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked()
}

// Reach has the clock go on from ms where it is behind that: an earlier process came so far,
// and when the machine's clock was set back since, that is a step like any other. What is not
// credible is passed over.
func (c *Clock) Reach(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wall := c.readLocked()
	if ms <= now || ms-wall > Credible.Milliseconds() {
		return
	}
	c.mu.last, c.mu.lastAt = ms, time.Now()
	for a := range c.mu.alarms {
		a.poke()
	}
}

func (c *Clock) nowLocked() int64 {
	now, _ := c.readLocked()
	return now
}

// readLocked is Now and Wall. Whoever reads the clock first after a step wakes all alarms.
func (c *Clock) readLocked() (now, wall int64) {
	at := time.Now()
	wall = at.Add(c.mu.offset).UnixMilli()
	lead := wall - at.Sub(c.mu.began).Milliseconds()
	if by := lead - c.mu.lead; by > stepped || by < -stepped {
		c.mu.lead = lead
		for a := range c.mu.alarms {
			a.poke()
		}
	}
	passed := at.Sub(c.mu.lastAt).Milliseconds()
	if going := c.mu.last + passed - passed/slower; wall < going {
		return going, wall
	}
	c.mu.last, c.mu.lastAt = wall, at
	return wall, wall
}

// Watch reads the clock now and then until ctx ends, so that a step of the machine's clock
// is noticed when nobody else does anything. It tells each time how far Now is ahead of Wall.
func (c *Clock) Watch(ctx context.Context, tell func(ahead time.Duration)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		now, wall := c.Read()
		tell(time.Duration(now-wall) * time.Millisecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// Step is what happens to c when somebody sets the machine's clock by d, forwards or
// backwards: nobody is told.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowLocked()
	c.mu.offset += d
}

// Alarm is when one loop has something to do next, by either time. The owner calls Set and
// Wait in turn; other goroutines may call Earlier and EarlierWall to bring a due time forward.
type Alarm struct {
	clock   *Clock
	due     int64 // of Now; 0 = nothing due; guarded by clock.mu, as are the others
	wall    int64 // of Wall
	waiting bool  // the owner is inside Wait
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

const (
	never    = math.MaxInt64 // until an alarm without due times rings
	farthest = 1 << 40       // milliseconds that a sleep may take, far within a time.Duration
)

// leftLocked is how many milliseconds it is until the alarm rings, none or less when it is
// due, if nobody sets the machine's clock.
func (a *Alarm) leftLocked() (left int64) {
	now, wall := a.clock.readLocked()
	left = never
	if a.due != 0 {
		left = a.due - now
	}
	if a.wall != 0 {
		left = min(left, a.wall-wall)
	}
	return left
}

// ringLocked clears the due times that have come.
func (a *Alarm) ringLocked() {
	now, wall := a.clock.readLocked()
	if a.due <= now {
		a.due = 0
	}
	if a.wall <= wall {
		a.wall = 0
	}
}

// Set replaces the due time of Now (milliseconds since 1970); 0 means that nothing is due.
func (a *Alarm) Set(due int64) {
	a.clock.mu.Lock()
	a.due = due
	a.clock.mu.Unlock()
	a.poke()
}

// Earlier brings the due time of Now forward to due if it is later than that or unset.
func (a *Alarm) Earlier(due int64) { a.earlier(&a.due, due) }

// EarlierWall is Earlier for the due time of Wall.
func (a *Alarm) EarlierWall(due int64) { a.earlier(&a.wall, due) }

func (a *Alarm) earlier(of *int64, due int64) {
	a.clock.mu.Lock()
	moved := *of == 0 || due < *of
	if moved {
		*of = due
	}
	a.clock.mu.Unlock()
	if moved {
		a.poke()
	}
}

// Wait returns nil when a due time has come, and clears it; the owner is then busy until it
// calls Wait again, and Advance waits for that. It returns the context's error when that
// ends first.
func (a *Alarm) Wait(ctx context.Context) error {
	c := a.clock
	for {
		c.mu.Lock()
		a.waiting = true
		left := a.leftLocked()
		if left <= 0 {
			a.ringLocked()
			a.waiting = false
			c.mu.Unlock()
			return nil
		}
		c.mu.idle.Broadcast()
		var timer *time.Timer
		var ring <-chan time.Time
		if left < never {
			timer = time.NewTimer(time.Duration(min(left, farthest)) * time.Millisecond)
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
	c.moving.Store(true)
	defer c.moving.Store(false)
	c.mu.Lock()
	target := c.nowLocked() + d.Milliseconds()
	for {
		by := target - c.nowLocked()
		for a := range c.mu.alarms {
			by = min(by, a.leftLocked())
		}
		if by > 0 {
			c.mu.offset += time.Duration(by) * time.Millisecond
			c.mu.last += by
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

// Advancing reports whether somebody moves the clock and waits for the work on the way.
func (c *Clock) Advancing() bool { return c.moving.Load() }

// busyLocked reports whether some owner has work that is due or in hand.
func (c *Clock) busyLocked() bool {
	for a := range c.mu.alarms {
		if !a.waiting || a.leftLocked() <= 0 {
			return true
		}
	}
	return false
}
