package storage

import (
	"slices"
	"sync"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/filter"
)

const (
	// traitsStretch is how much of the log one stretch is for.
	traitsStretch = 1 << 20
	// maxTraits bounds of how many records the traits are kept: 18 MB of them.
	maxTraits = 3 << 19
)

// traits are those of the records that were dispatched last, by their place in the log, so
// that a filter by properties passes what it can't want without reading it. What came before
// the process began, or is too long ago, has none here and is read.
type traits struct {
	mu        sync.RWMutex
	stretches map[int64]*stretch
	oldest    []int64 // the stretches in the order of the log
	records   int
}

// stretch has the records that begin in a piece of the log, sorted by where.
type stretch struct {
	at []uint32 // from the piece's beginning
	of []filter.Traits
}

// add takes in what is dispatched, which is in log order.
func (t *traits) add(entries []commitlog.Entry[note]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var s *stretch
	last := int64(-1)
	for i := range entries {
		e := &entries[i]
		if e.Note.queue == nil || e.Note.traits == 0 {
			continue
		}
		n := e.PhysicalOffset / traitsStretch
		if n != last {
			s, last = t.stretch(n), n
		}
		s.at = append(s.at, uint32(e.PhysicalOffset%traitsStretch))
		s.of = append(s.of, e.Note.traits)
		t.records++
	}
}

func (t *traits) stretch(n int64) *stretch {
	s := t.stretches[n]
	if s != nil {
		return s
	}
	for t.records > maxTraits {
		t.records -= len(t.stretches[t.oldest[0]].at)
		delete(t.stretches, t.oldest[0])
		t.oldest = t.oldest[1:]
	}
	if t.stretches == nil {
		t.stretches = make(map[int64]*stretch)
	}
	s = &stretch{}
	t.stretches[n], t.oldest = s, append(t.oldest, n)
	return s
}

// impossible tells of queue entries whether the filter can't want them: by their traits, if
// those are here.
func (t *traits) impossible(f *filter.Expression, entries []consumequeue.Entry, out []bool) []bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range entries {
		out = append(out, !f.Possible(t.of(entries[i].Physical)))
	}
	return out
}

func (t *traits) of(physical int64) filter.Traits {
	s := t.stretches[physical/traitsStretch]
	if s == nil {
		return 0
	}
	i, ok := slices.BinarySearch(s.at, uint32(physical%traitsStretch))
	if !ok {
		return 0
	}
	return s.of[i]
}
