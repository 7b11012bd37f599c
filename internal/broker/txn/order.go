package txn

import (
	"cmp"
	"slices"
)

// openLocked begins what is known of an open half message.
func (t *Txn) openLocked(e *entry) {
	t.mu.open[e.first] = e
	if e.at >= 0 {
		t.mu.order.add(e)
	}
	t.touchLocked(e)
}

// touchLocked notes that an entry is otherwise than in the state database.
func (t *Txn) touchLocked(e *entry) {
	if e.dirty {
		return
	}
	e.dirty = true
	t.mu.changed = append(t.mu.changed, e)
	if most := 2*len(t.mu.open) + keptGone; len(t.mu.changed) > most {
		t.mu.changed = withoutGone(t.mu.changed, func(e *entry) bool { return !e.gone })
	}
	t.mu.order.tidy(len(t.mu.open))
}

// keptGone is how many entries that have gone a list may hold before they are looked for.
const keptGone = 1024

func withoutGone[T any](list []T, stays func(T) bool) []T {
	kept := list[:0]
	for _, x := range list {
		if stays(x) {
			kept = append(kept, x)
		}
	}
	clear(list[len(kept):])
	return kept
}

// order is where the open half messages are in the half queue, the first one first. They
// come in this order but for some steps, and mostly leave in it.
type order struct {
	list []position
	head int
}

// position is where an entry was when it was added; it may have gone or moved on since.
type position struct {
	at int64
	*entry
}

func (p position) stays() bool { return !p.gone && p.entry.at == p.at }

// add notes where e is now.
func (o *order) add(e *entry) {
	o.list = append(o.list, position{e.at, e})
	for i := len(o.list) - 1; i > o.head && o.list[i-1].at > e.at; i-- {
		o.list[i-1], o.list[i] = o.list[i], o.list[i-1]
	}
}

// restore puts many where they are, which may be in any order.
func (o *order) restore(list []*entry) {
	for _, e := range list {
		o.list = append(o.list, position{e.at, e})
	}
	slices.SortStableFunc(o.list[o.head:], func(a, b position) int { return cmp.Compare(a.at, b.at) })
}

// first is the lowest place; there is none where nothing is open.
func (o *order) first() (at int64, ok bool) {
	for ; o.head < len(o.list); o.head++ {
		if p := o.list[o.head]; p.stays() {
			return p.at, true
		}
		o.list[o.head] = position{}
	}
	o.list, o.head = o.list[:0], 0
	return 0, false
}

// tidy keeps what has gone from being much more than what is open.
func (o *order) tidy(open int) {
	if len(o.list) > 2*open+keptGone {
		o.list, o.head = withoutGone(o.list[o.head:], position.stays), 0
	}
}
