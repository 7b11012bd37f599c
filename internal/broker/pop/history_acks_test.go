package pop

import (
	"slices"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// This file is the part of histories in which consumers answer for what they got.

// pick chooses one of all receipts ever given, recent ones more often.
func (m *model) pick(rt *rapid.T) (given, bool) {
	n := len(m.handles)
	if n == 0 {
		return given{}, false
	}
	back := rapid.IntRange(0, min(n-1, 16)).Draw(rt, "handle")
	return m.handles[n-1-back], true
}

// expect ends the history where an answer is none of those that are allowed.
func (m *model) expect(what string, h given, err error, allowed []error) {
	if !slices.Contains(allowed, err) {
		m.rt.Fatalf("%s of %v popped at %d: %v, want one of %v (%+v, now %d)", what, h.at, h.handle.PopTime, err, allowed, m.places[h.at], m.now())
	}
}

func (m *model) acked(h given, err error, allowed []error) {
	m.expect("ack", h, err, allowed)
	if p := m.places[h.at]; err == nil && p.state != done && p.state != passed {
		m.waited = true
		m.set(p, func(c *condition) { c.state = done })
		m.final[[2]string{h.at.group, p.id}] = h.at
	}
}

func (m *model) ack(rt *rapid.T) {
	h, ok := m.pick(rt)
	if !ok {
		return
	}
	allowed := m.verdicts(h)
	m.b.pop.Ack(h.at.group, m.origin(h.at), h.handle, func(err error) { m.answer(func() { m.acked(h, err, allowed) }) })
	m.judge(1)
}

// answer keeps an answer, which may come from the committer, for judge: only the history's
// own goroutine may end it.
func (m *model) answer(f func()) { m.answers = append(m.answers, f) }

// judge waits for n answers and looks at them. No worker runs here.
func (m *model) judge(n int) {
	synctest.Wait()
	m.b.pop.runReady()
	if len(m.answers) != n {
		m.rt.Fatalf("%d answers, want %d", len(m.answers), n)
	}
	for _, f := range m.answers {
		f()
	}
	m.answers = nil
}

func (m *model) ackBatch(rt *rapid.T) {
	var hs []given
	var handles []receipt.Handle
	seen := map[place]bool{}
	for range rapid.IntRange(1, 5).Draw(rt, "n") {
		h, ok := m.pick(rt)
		if !ok || seen[h.at] || len(hs) > 0 && (h.at.group != hs[0].at.group || m.origin(h.at) != m.origin(hs[0].at)) {
			continue
		}
		seen[h.at] = true
		hs, handles = append(hs, h), append(handles, h.handle)
	}
	if len(hs) == 0 {
		return
	}
	var allowed [][]error
	for _, h := range hs {
		allowed = append(allowed, m.verdicts(h))
	}
	m.b.pop.AckBatch(hs[0].at.group, m.origin(hs[0].at), handles, func(errs []error) {
		m.answer(func() {
			for i, err := range errs {
				m.acked(hs[i], err, allowed[i])
			}
		})
	})
	m.judge(1)
}

// ackBits acknowledges in the other batch form: all that one pop got in one queue, and some
// of its neighbours.
func (m *model) ackBits(rt *rapid.T) {
	h, ok := m.pick(rt)
	if !ok {
		return
	}
	start := h.at.offset
	e := BatchAck{Group: h.at.group, Topic: h.at.topic, QueueID: h.at.queue, PopTime: h.handle.PopTime, Invisible: h.handle.InvisibleTime, Bits: make([]byte, 2)}
	var hs []given
	var allowed [][]error
	for _, o := range slices.Backward(m.handles) { // a lost delivery may have had the same name
		i := o.at.offset - start
		if o.at.group != h.at.group || o.at.topic != h.at.topic || o.at.queue != h.at.queue || i < 0 || i > 15 || o.handle.PopTime != e.PopTime || o.handle.InvisibleTime != e.Invisible || o.life != h.life || e.Bits[i/8]>>(i%8)&1 != 0 {
			continue
		}
		e.Bits[i/8] |= 1 << (i % 8)
		hs, allowed = append(hs, o), append(allowed, m.verdicts(o))
	}
	e.StartOffset = start
	sure, most := 0, 0
	for _, v := range allowed {
		if v[0] == nil {
			if most++; len(v) == 1 {
				sure++
			}
		}
	}
	m.b.pop.AckBits([]BatchAck{e}, func(n int, err error) {
		m.answer(func() {
			if n < sure || n > most || n < len(hs) && err == nil {
				m.rt.Fatalf("ack of %d in %+v: %d, want %d to %d (%v)", len(hs), e, n, sure, most, err)
			}
			for i, v := range allowed {
				if v[0] == nil {
					m.acked(hs[i], nil, v)
				}
			}
		})
	})
	m.judge(1)
}

func (m *model) change(rt *rapid.T) {
	h, ok := m.pick(rt)
	if !ok {
		return
	}
	allowed := m.changeable(h)
	p := m.places[h.at]
	invisible := int64(rapid.SampledFrom([]int{0, 5, 40, 500, 60_000}).Draw(rt, "to"))
	suspend := rapid.Bool().Draw(rt, "suspend")
	m.b.pop.ChangeInvisible(h.at.group, m.origin(h.at), h.handle, invisible, suspend, func(n receipt.Handle, err error) {
		m.answer(func() {
			m.expect("change", h, err, allowed)
			if err != nil {
				return
			}
			if n.PopTime <= p.popTime {
				m.rt.Fatalf("change of %v gave the name %d after %d", h.at, n.PopTime, p.popTime)
			}
			m.waited = true
			m.set(p, func(c *condition) {
				attempt := c.attempt
				if attempt != noOrder {
					attempt = "changed"
				}
				*c = condition{state: inFlight, popTime: n.PopTime, due: n.PopTime + n.InvisibleTime, invisible: n.InvisibleTime, suspend: suspend, holder: c.holder, attempt: attempt, attempts: c.attempts}
			})
			m.handles = append(m.handles, given{at: h.at, handle: n, era: m.era, life: h.life})
		})
	})
	m.judge(1)
}

// changeable is what a change or a forward of h may be answered.
func (m *model) changeable(h given) []error {
	if p := m.places[h.at]; p != nil && p.state == done && h.handle.PopTime <= p.popTime && !h.void && h.life == m.life(h.at) {
		if h.era < m.era { // the delivery may be lost, and the message be done by an earlier one
			return []error{ErrExpired, ErrIllegal, ErrStale}
		}
		return []error{ErrExpired}
	}
	return m.verdicts(h)
}

// forward sends a message to the dead letters, as its consumer asks.
func (m *model) forward(rt *rapid.T) {
	h, ok := m.pick(rt)
	if !ok {
		return
	}
	allowed := m.changeable(h)
	p := m.places[h.at]
	if p != nil && p.state == inFlight && p.forwarded && h.handle.PopTime == p.popTime && !h.void && h.life == m.life(h.at) {
		allowed = []error{nil} // asked for twice
	}
	failing := m.b.store.failTopics[names.DeadLetter(h.at.group)] != nil
	if allowed[0] == nil && !failing {
		m.set(p, func(c *condition) { c.forwarded = true })
	}
	m.b.pop.Forward(h.at.group, m.origin(h.at), h.handle, func(err error) {
		m.answer(func() {
			if failing && allowed[0] == nil && !p.forwarded {
				if err == nil {
					m.rt.Fatalf("forward of %v: OK without a dead letter", h.at)
				}
				return
			}
			m.expect("forward", h, err, allowed)
		})
	})
	m.judge(1)
}
