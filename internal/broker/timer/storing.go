package timer

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
)

const (
	// storeWithin is how long changes wait for others, storeAt how many of them do.
	storeWithin = time.Second
	storeAt     = 1 << 14
	// syncedWithin is how often those that wait for the log's next sync are looked at.
	syncedWithin = 100 * time.Millisecond
)

// changes are what the database does not know yet.
type changes struct {
	puts map[place]entry
	dels map[place]struct{}
}

func noChanges() changes { return changes{make(map[place]entry), make(map[place]struct{})} }

// of is what changes know of a place: the message that waits there, or that none does.
func (c *changes) of(p place) (e entry, waits, known bool) {
	if e, waits = c.puts[p]; waits {
		return e, true, true
	}
	_, known = c.dels[p]
	return entry{}, false, known
}

// add adds changes that came later, and may keep their maps.
func (c *changes) add(later changes) {
	if c.puts == nil {
		*c = later
		return
	}
	for p, e := range later.puts {
		delete(c.dels, p)
		c.puts[p] = e
	}
	for p := range later.dels {
		delete(c.puts, p)
		c.dels[p] = struct{}{}
	}
}

func (c *changes) count() int { return len(c.puts) + len(c.dels) }

// storing is changes that were put together, and what else is stored with them. They are
// written when the log is durable up to end, behind all that they speak of: a sync of the log
// for their own sake, while very many messages go, would make everybody wait. Until they are
// stored nobody knows whether the database has them.
type storing struct {
	changes
	wave   *wave
	counts map[string]int64
	next   int64 // of the queue
	end    int64
}

// unstoredLocked is what is known of a place that the database does not know, or not yet.
func (w *Wheel) unstoredLocked(p place) (e entry, waits, known bool) {
	if e, waits, known = w.mu.changes.of(p); known {
		return e, waits, known
	}
	return w.mu.sent.of(p)
}

// endedLocked reports whether a place that the database has is to be removed.
func (w *Wheel) endedLocked(p place) bool {
	_, waits, known := w.unstoredLocked(p)
	return known && !waits
}

// eachUnstoredLocked calls f, once each, for the messages that wait and of which nobody knows
// whether the database has them.
func (w *Wheel) eachUnstoredLocked(f func(entry)) {
	m := &w.mu
	for _, e := range m.puts {
		f(e)
	}
	for p, e := range m.sent.puts {
		if _, _, newer := m.changes.of(p); !newer {
			f(e)
		}
	}
}

func (w *Wheel) manyLocked() bool { return w.mu.sent.puts == nil && w.mu.count() >= storeAt }

// changed has the changes stored: soon, or now when there are many.
func (w *Wheel) changed(many bool) {
	if many {
		w.o.State.CommitSource(w)
	} else {
		w.o.State.CommitSourceWithin(w, storeWithin)
	}
}

// Settle has the next commit store everything: what dispatch has told so far is going to be
// forgotten.
func (w *Wheel) Settle() {
	w.mu.Lock()
	w.mu.settle = true
	w.mu.Unlock()
	w.o.State.CommitSource(w)
}

// Collect writes what has changed, as soon as it may.
func (w *Wheel) Collect(b *state.Batch) func(error) {
	if !w.gather(b) {
		return nil
	}
	w.mu.sent.write(b)
	return w.stored
}

// gather reports whether what is gathered in sent is to be written now. From then on until it is
// stored it does not change, so that it can be written while others look into it.
func (w *Wheel) gather(b *state.Batch) bool {
	m := &w.mu
	m.Lock()
	defer m.Unlock()
	if m.eager || m.settle {
		m.settle = false
		w.gatherLocked()
		b.AfterLog()
		return true
	}
	if m.sent.puts == nil {
		if rest := storeWithin - time.Since(m.storedAt); rest > 0 && m.count() < storeAt {
			w.o.State.CommitSourceWithin(w, rest)
			return false
		}
		w.gatherLocked()
		m.sent.end = w.o.Store.LogEnd()
	}
	if w.o.Store.LogSynced() < m.sent.end {
		w.o.State.CommitSourceWithin(w, syncedWithin)
		return false
	}
	return true
}

// gatherLocked adds the changes to those that are being stored.
func (w *Wheel) gatherLocked() {
	m := &w.mu
	s := &m.sent
	m.storedAt = time.Now()
	if s.puts == nil {
		s.counts = make(map[string]int64)
	}
	s.changes.add(m.changes)
	s.next = m.next
	s.wave = w.waveLocked(s.dels)
	now := w.o.Clock.WallMilli()
	for name := range m.recounts {
		n := m.counts[name]
		s.counts[name], m.counted[name] = n, now
		if n == 0 {
			delete(m.counts, name)
			delete(m.counted, name)
			delete(m.names, name)
		}
	}
	m.changes, m.recounts = noChanges(), make(map[string]struct{})
}

// wave is very many messages that have ended, from the first place to the last: what is between
// them has ended too, or never was. The database forgets it at once, instead of place by place,
// which costs it much more than to have stored them, and everybody a processor at the worst time.
type wave struct{ first, last place }

// waveLocked finds the wave among the places that are to be removed: those before everything
// that waits. It is nil where they are few.
func (w *Wheel) waveLocked(dels map[place]struct{}) *wave {
	if len(dels) < w.waveLeast {
		return nil
	}
	front := w.frontLocked()
	n, v := 0, wave{first: noEdge}
	for p := range dels {
		if p.compare(front) >= 0 {
			continue
		}
		n++
		if p.compare(v.first) < 0 {
			v.first = p
		}
		if p.compare(v.last) > 0 {
			v.last = p
		}
	}
	if n < w.waveLeast {
		return nil
	}
	return &v
}

// frontLocked is a place before which nothing waits, in memory or in the database.
func (w *Wheel) frontLocked() place {
	m := &w.mu
	front := m.edge // from here on nobody knows what the database has
	before := func(p place) {
		if p.compare(front) < 0 {
			front = p
		}
	}
	if len(m.near) > 0 {
		before(m.near[0].place)
	}
	for p := range m.claims {
		before(p)
	}
	for i := range m.later {
		before(m.later[i].place)
	}
	return front
}

// has reports whether a place is in the wave.
func (v *wave) has(p place) bool {
	return p.compare(v.first) >= 0 && p.compare(v.last) <= 0
}

// write puts them into a batch, in the order of their keys, which the database takes best. The
// wave comes first: what is put waits, so it is behind all of the wave.
func (s *storing) write(b *state.Batch) {
	var key, value []byte
	if v := s.wave; v != nil {
		b.DeleteRange(state.Wheel, keyOfEntry(v.first), keyOfEntry(place{v.last.due, v.last.offset + 1}))
	}
	for _, p := range sorted(s.puts) {
		e := s.puts[p]
		key, value = p.appendKey(key[:0]), e.appendValue(value[:0])
		b.Put(state.Wheel, key, value)
	}
	for _, p := range s.alone() {
		key = p.appendKey(key[:0])
		b.Delete(state.Wheel, key)
	}
	for name, n := range s.counts {
		key = append(append(key[:0], keyOfCounts...), name...)
		if n > 0 {
			b.Put(state.Wheel, key, binary.BigEndian.AppendUint64(nil, uint64(n)))
		} else {
			b.Delete(state.Wheel, key)
		}
	}
	b.Put(state.Wheel, keyOfProgress, binary.BigEndian.AppendUint64(nil, uint64(s.next)))
}

// alone are the places to be removed one by one.
func (s *storing) alone() []place {
	if s.wave == nil {
		return sorted(s.dels)
	}
	var list []place
	for p := range s.dels {
		if !s.wave.has(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, place.compare)
	return list
}

func sorted[T any](of map[place]T) []place {
	return slices.SortedFunc(maps.Keys(of), place.compare)
}

// stored ends what Collect began. Where it failed the database has failed, for good.
func (w *Wheel) stored(error) {
	w.mu.Lock()
	if w.mu.loading != nil {
		w.mu.passed.add(w.mu.sent.changes)
	}
	w.mu.sent = storing{}
	left, many := w.mu.count() > 0 || len(w.mu.recounts) > 0, w.manyLocked()
	w.mu.Unlock()
	if left {
		w.changed(many)
	}
}

// Bulk says that there may be many changes.
func (w *Wheel) Bulk() {}

var _ state.Bulk = (*Wheel)(nil)
