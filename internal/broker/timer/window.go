package timer

import (
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// entries is a heap by place.
type entries []entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].compare(h[j].place) < 0 }
func (h entries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *entries) Push(x any) { *h = append(*h, x.(entry)) }

// Pop implements heap.Interface.
func (h *entries) Pop() any { return h.cut() }

func (h *entries) cut() entry {
	n := len(*h) - 1
	last := (*h)[n]
	(*h)[n] = entry{}
	*h = (*h)[:n]
	return last
}

// push is heap.Push, which would allocate.
func (h *entries) push(e entry) {
	*h = append(*h, e)
	heap.Fix(h, len(*h)-1)
}

// pop is heap.Pop.
func (h *entries) pop() entry {
	h.Swap(0, len(*h)-1)
	first := h.cut()
	if len(*h) > 0 {
		heap.Fix(h, 0)
	}
	return first
}

// pushLocked adds a message to the window. When that gets too large, its later half is left
// to the database.
func (w *Wheel) pushLocked(e entry) {
	m := &w.mu
	m.near.push(e)
	if len(m.near) <= w.o.Near {
		return
	}
	slices.SortFunc(m.near, func(a, b entry) int { return a.compare(b.place) }) // which is a heap
	half := len(m.near) / 2
	m.edge = m.near[half].place
	for i := half; i < len(m.near); i++ {
		delete(m.gone, m.near[i].place)
	}
	clear(m.near[half:])
	m.near = m.near[:half]
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// load fills the empty window with the next messages from the database.
func (w *Wheel) load() error {
	m := &w.mu
	m.Lock()
	from := m.edge
	m.loading = make(map[place]struct{})
	m.Unlock()
	found, last := w.work.found[:0], noEdge
	err := w.o.State.ScanFrom(state.Wheel, keyOfEntries, keyOfEntry(from), func(key, value []byte) error {
		p, ok := placeOfKey(key)
		if !ok {
			return nil
		}
		if len(found) >= max(w.o.Near/loadOfNear, 2) {
			last = p
			return errEnough
		}
		if len(found)%loadPiece == loadPiece-1 {
			giveWay()
		}
		m.Lock()
		e, ok := w.entryLocked(p, value)
		m.Unlock()
		if ok {
			found = append(found, e)
		}
		return nil
	})
	w.work.found = found
	m.Lock()
	defer m.Unlock()
	left, passed := m.loading, m.passed
	m.loading, m.passed = nil, changes{}
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case m.edge.compare(from) < 0: // so much was added meanwhile that the window is full again
		return nil
	}
	w.spreadLocked(from, last, found, left, passed)
	return nil
}

// spreadLocked moves the window's edge from one place to another. found is what the database
// had between them when it was asked, left what has ended since, passed what was stored since,
// which it may not have had yet; all else that waits is in memory. Those found are in their order.
func (w *Wheel) spreadLocked(from, to place, found []entry, left map[place]struct{}, passed changes) {
	m := &w.mu
	m.edge = to
	add := func(e entry) {
		if _, ended := left[e.place]; ended || e.compare(from) < 0 || e.compare(to) >= 0 {
			return
		}
		if c, claimed := m.claims[e.place]; claimed {
			c.popped = false
			m.claims[e.place] = c
		}
		if e.compare(m.edge) < 0 { // adding may have moved it
			w.pushLocked(e)
		}
	}
	found = slices.DeleteFunc(found, func(e entry) bool {
		_, waits, known := passed.of(e.place)
		return known && !waits || w.endedLocked(e.place)
	})
	for _, e := range found {
		add(e)
	}
	seen := make(map[place]struct{}) // of those that were not found, which are sorted
	late := func(e entry) {
		_, twice := seen[e.place]
		if _, there := slices.BinarySearchFunc(found, e.place, func(f entry, p place) int { return f.compare(p) }); there || twice {
			return
		}
		seen[e.place] = struct{}{}
		add(e)
	}
	for p, e := range passed.puts {
		if !w.endedLocked(p) {
			late(e)
		}
	}
	w.eachUnstoredLocked(late)
}

// take claims the next messages that are due by what the machine's clock shows, some windows of
// them, now being the protocol's time. full says that there may be more. They are good until it is
// called again.
func (w *Wheel) take(now, wall int64) (out []entry, full bool, err error) {
	m := &w.mu
	out = w.work.due[:0]
	defer func() { w.work.due = out }()
	bytes, most := 0, 0
	for {
		m.Lock()
		if m.retryAt > 0 && m.retryAt <= now {
			for _, e := range m.later {
				w.giveBackLocked(e)
			}
			m.later, m.retryAt = nil, 0
		}
		for len(m.near) > 0 && m.near[0].due <= wall {
			if len(out) == 0 {
				_, most = windowOf(wall - m.near[0].due)
				most = max(most, takeBytes)
			}
			if full = len(out) == takeMost || len(out) > 0 && bytes+int(m.near[0].size) > most; full {
				break
			}
			e := m.near.pop()
			if _, gone := m.gone[e.place]; gone {
				delete(m.gone, e.place)
				continue
			}
			if c, claimed := m.claims[e.place]; claimed {
				c.popped = true // it comes back when that comes to nothing
				m.claims[e.place] = c
				continue
			}
			m.claims[e.place] = claim{entry: e, popped: true, delivery: true}
			out = append(out, e)
			bytes += int(e.size)
		}
		empty := len(m.near) == 0 && m.edge != noEdge
		m.Unlock()
		if !empty || full {
			return out, full, nil
		}
		if err := w.load(); err != nil {
			return out, full, err
		}
	}
}

// giveBackLocked puts a message that was taken out of the window back.
func (w *Wheel) giveBackLocked(e entry) {
	if e.compare(w.mu.edge) < 0 {
		w.pushLocked(e)
	}
}

// release ends a claim that has come to nothing.
func (w *Wheel) release(p place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.releaseLocked(p)
}

func (w *Wheel) releaseLocked(p place) {
	if c, claimed := w.mu.claims[p]; claimed {
		delete(w.mu.claims, p)
		if c.popped {
			w.giveBackLocked(c.entry)
		}
		w.lookAgainLocked(&c.entry)
		w.ring(&c.entry)
	}
}

// ring has the loop look when a message is due, by the time that counts for it.
func (w *Wheel) ring(e *entry) {
	w.alarm.EarlierWall(e.due)
	if e.relative {
		w.alarm.Earlier(e.due)
	}
}

// nextLook has the loop look when there is something to do again, if nobody says so before.
// By the protocol's time it looks then, too: when the machine's clock is set back meanwhile,
// it comes to deliverDelays before any delay has ended. Where it was set back since that did not
// have to look, some may have ended already.
func (w *Wheel) nextLook() {
	now, wall := w.o.Clock.Read()
	m := &w.mu
	m.Lock()
	defer m.Unlock()
	if m.delays.idle && now > wall {
		w.alarm.Earlier(now)
	}
	if m.retryAt > 0 {
		w.alarm.Earlier(m.retryAt)
	}
	if len(m.near) == 0 {
		return
	}
	first := m.near[0].due
	w.alarm.EarlierWall(first)
	if first > now {
		w.alarm.Earlier(first)
	}
}

// nextRound is when the round after one that began at a time is to begin. Who moves the clock
// does not wait for rounds.
func (w *Wheel) nextRound(began time.Time) time.Time {
	if !w.flow.steady || w.o.Clock.Advancing() {
		return began
	}
	return began.Add(roundOf(w.soon()))
}

// soon counts the messages that are due within the longest round.
func (w *Wheel) soon() int {
	end := w.o.Clock.WallMilli() + longestRound.Milliseconds()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.near.before(end, 4*roundFull)
}

// before counts the messages that are due before a time, or most of them.
func (h entries) before(end int64, most int) (n int) {
	var count func(i int)
	count = func(i int) {
		if i >= len(h) || n == most || h[i].due >= end {
			return
		}
		n++
		count(2*i + 1)
		count(2*i + 2)
	}
	count(0)
	return n
}
