package commitlog

import "time"

// gathering lets a synchronous log wait a little before it takes what is pending, so that
// one sync serves all who send at the time instead of every other sync half of them.
// Senders that wait for their answers send again right behind it: the log expects as many
// appends as it has just answered, and those that came meanwhile, and waits for them for a
// part of what a sync takes. Where that does not pay, because they do not come, it does
// not wait for a number of turns. It is the writer's alone.
type gathering struct {
	timer    *time.Timer
	expected int           // appends
	since    time.Time     // when they were answered
	sync     time.Duration // what a sync takes, on average
	skip     int           // turns
}

const (
	maxGather  = 500 * time.Microsecond
	skipGather = 32
)

// limit is the longest wait.
func (g *gathering) limit() time.Duration { return min(g.sync/2, maxGather) }

// synced notes what a sync took.
func (g *gathering) synced(d time.Duration) { g.sync += (d - g.sync) / 8 }

// answered notes that n appends were answered while more were pending.
func (g *gathering) answered(n, pending int) { g.expected, g.since = n+pending, time.Now() }

// gather waits until as many appends are pending as are expected, when there are any.
func (l *Log[N]) gather() {
	g := &l.gathering
	l.mu.Lock()
	have := len(l.mu.pending.Entries)
	if have == 0 || have >= g.expected {
		l.mu.Unlock()
		return
	}
	if g.skip > 0 {
		g.skip--
		l.mu.Unlock()
		return
	}
	left := g.limit() - time.Since(g.since)
	if left <= 0 {
		l.mu.Unlock()
		return
	}
	l.mu.want, l.mu.asleep = g.expected, true
	l.mu.Unlock()
	if g.timer == nil {
		g.timer = time.NewTimer(left)
	} else {
		g.timer.Reset(left)
	}
	select {
	case <-l.wake:
		g.timer.Stop()
		return
	case <-g.timer.C:
	}
	l.mu.Lock()
	woken := !l.mu.asleep
	l.mu.want, l.mu.asleep = 0, false
	have = len(l.mu.pending.Entries)
	l.mu.Unlock()
	if woken {
		<-l.wake
	}
	if have < g.expected*3/4 {
		g.skip = skipGather
	}
}
