package pop

import (
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/bolidemq/bolide/internal/clock"
)

// This file is the part of histories in which processes end and begin again.

func (m *model) arm(rt *rapid.T) {
	m.armTrap(rapid.IntRange(0, 4).Draw(rt, "writes"), rt)
}

// armTrap decides how much of what was not synced a crash leaves. A killed process loses
// nothing of it; power may only be cut where everything is synced.
func (m *model) armTrap(writes int, rt *rapid.T) {
	unsynced := 100
	if m.b.sync {
		unsynced = rapid.IntRange(0, 100).Draw(rt, "unsynced")
	}
	m.trap.Arm(writes, unsynced, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)))
}

// crash comes between two steps. It may take the end of the log that was not dispatched.
func (m *model) crash(rt *rapid.T) {
	m.armTrap(0, rt)
	m.learn()
	lose := rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(rt, "lose")
	m.trap.Now(m.b.fs)
	m.caughtAt -= m.b.store.undispatched(lose)
}

// restart is a clean one.
func (m *model) restart(rt *rapid.T) {
	m.trap.Disarm()
	m.b.close()
	m.barrier()
	m.setBack(rt)
	before := m.now()
	m.open()
	m.afterOpen(before)
}

// setBack lets the machine's clock be another one after a restart.
func (m *model) setBack(rt *rapid.T) {
	by := rapid.SampledFrom([]int{0, 0, 1, -10, -3600, -48 * 3600, 100}).Draw(rt, "clock")
	was := m.b.clock.NowMilli()
	m.b.clock = clock.New()
	m.b.clock.Step(time.Duration(was-m.b.clock.NowMilli())*time.Millisecond + time.Duration(by)*time.Second)
}

// die goes on from what a crash left. A crash may come during the recovery as well.
func (m *model) die(left *vfs.MemFS) {
	m.setBack(m.rt)
	m.learn()
	for {
		again := rapid.IntRange(0, 7).Draw(m.rt, "again")
		before := m.now()
		m.lose()
		m.b.store.onDispatch = nil
		m.b.close() // its last writes go to the old disk
		m.b.fs = left
		if again < 3 {
			m.armTrap(again*5, m.rt)
		}
		m.open()
		synctest.Wait()
		m.trap.Disarm()
		m.afterOpen(before)
		if !m.trap.Caught() {
			return
		}
		left = m.trap.Take()
	}
}

// lose takes back what was appended after the picture was made.
func (m *model) lose() {
	for _, d := range m.b.store.lose(m.caughtAt) {
		if d.Source != "" {
			m.copies[d.Source]--
		}
		for _, g := range modelGroups {
			delete(m.places, place{g, d.Topic, d.QueueID, d.QueueOffset})
		}
	}
	m.learned = min(m.learned, m.caughtAt)
}

// afterOpen finds out what became of each place and dispatches again what the store is not
// sure of.
func (m *model) afterOpen(before int64) {
	m.era++
	for _, name := range m.doomed {
		if _, ok := m.b.topics.Get(name); !ok {
			m.topicGone(name)
		}
	}
	for _, name := range m.fell {
		if _, ok := m.b.groups.Get(name); !ok {
			m.groupGone(name)
		}
	}
	m.doomed, m.fell = nil, nil
	for _, name := range modelTopics {
		_, m.topics[name].exists = m.b.topics.Get(name)
	}
	for _, name := range modelGroups {
		if g, ok := m.b.groups.Get(name); !ok || g.RetryMaxTimes != m.groups[name].limit {
			m.createGroup(m.groups[name])
		}
	}
	v := m.picture()
	for at, p := range m.all() {
		if m.topicOf(at).exists {
			m.recover(at, p, v.of(at), before)
		}
	}
	m.touched = nil
	for i := range m.handles {
		h := &m.handles[i]
		if p := m.places[h.at]; h.void && p != nil && p.state == inFlight && p.popTime == h.handle.PopTime {
			h.void = false // the reset was lost
		}
	}
	m.b.store.mu.Lock()
	held := m.b.store.held
	replay := append(slices.Clone(m.b.store.recent), held...)
	m.b.store.held = nil
	m.b.store.mu.Unlock()
	m.ended(replay)
	for _, d := range replay {
		m.b.store.dispatch(d)
	}
	synctest.Wait()
}

// recover finds a condition of p's past that fits to what was recovered.
func (m *model) recover(at place, p *modelPlace, seen sight, before int64) {
	all := append(slices.Clone(p.past), p.condition)
	p.past = nil
	for _, c := range slices.Backward(all) {
		flies := c.state == inFlight || c.state == claimed
		mixed := m.groups[at.group].kinds[m.origin(at)] == mixed
		switch {
		case seen.what == "finished" && c.state.finished(),
			seen.what == "visible" && c.state == visible && (mixed || c.attempts == m.attemptsOf(at)),
			seen.what == "flies" && flies && c.popTime == seen.f.PopTime:
		default:
			continue
		}
		if p.state == done && c.state != done {
			delete(m.final, [2]string{at.group, p.id})
		}
		p.condition = c
		switch {
		case flies:
			m.recoverFlight(at, p, seen.f, before)
		case c.state == visible:
			p.popTime = 0 // its last delivery may be forgotten
		default:
			for _, c := range all {
				p.popTime = max(p.popTime, c.popTime)
			}
		}
		p.forwarded = false
		return
	}
	m.rt.Fatalf("after a restart %s at %v is %+v; it was one of %+v", p.id, at, seen, all)
}

// attemptsOf is how often a visible message was delivered in order.
func (m *model) attemptsOf(at place) int32 {
	w := m.b.pop.window(windowKey{at.group, at.topic, at.queue})
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i, ok := w.asideAtLocked(at.offset); ok {
		return w.mu.aside[i].attempts
	}
	return 0
}

// recoverFlight: what is in flight has no more time left than before, but for what is
// renewed, whose holder gets time to come back, and never more than its invisible time: where
// the clock was set back, nobody knows how long ago the last delivery was.
func (m *model) recoverFlight(at place, p *modelPlace, f InFlight, before int64) {
	shared := p.state == claimed || p.forwarded // with what is tried again, maybe
	if p.state = inFlight; f.Claimed {
		p.state = claimed // a forwarded one, too, whose dead letter is not known any more
	}
	p.attempt = map[bool]string{true: noOrder, false: "before"}[p.attempt == noOrder]
	left := f.Due - m.now()
	switch {
	case shared, p.state == claimed:
	case f.Renewed:
		if left > max(f.Invisible, 1000) {
			m.rt.Fatalf("%v, renewed, has %d ms left after a restart", at, left)
		}
	case f.Due != p.due:
		m.rt.Fatalf("%v is due at %d after a restart, before %+v", at, f.Due, p.condition)
	case left > f.Invisible, left > max(p.due-before, 0) && m.now() >= before:
		m.rt.Fatalf("%v has %d ms left after a restart, %d before", at, left, p.due-before)
	}
	p.due = f.Due
	p.renew = f.Renewed
}
