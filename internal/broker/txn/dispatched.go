package txn

import (
	"strconv"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
)

// sourcePrefix begins the names that copies of half messages carry. What follows says what
// the copy makes of the half message, whose queue offset comes last.
const sourcePrefix = "txn/"

var verbs = map[Outcome]string{Committed: "commit", RolledBack: "rollback", GivenUp: "giveup", Moved: "move"}

func sourceOf(to Outcome, first int64) string {
	return sourcePrefix + verbs[to] + "/" + strconv.FormatInt(first, 10)
}

func parseSource(s string) (to Outcome, first int64, ok bool) {
	s, ok = strings.CutPrefix(s, sourcePrefix)
	if !ok {
		return 0, 0, false
	}
	verb, number, _ := strings.Cut(s, "/")
	first, err := strconv.ParseInt(number, 10, 64)
	if err != nil || first < 0 {
		return 0, 0, false
	}
	for o, v := range verbs {
		if v == verb {
			return o, first, true
		}
	}
	return 0, 0, false
}

// Arrived takes note of a record that was dispatched into the half topic.
func (t *Txn) Arrived(d *storage.Dispatched) {
	if d.QueueID != 0 {
		return // half messages are in queue 0
	}
	if to, first, ok := parseSource(d.Source); ok && to == Moved {
		t.arrivedAgain(d, first)
		return
	}
	p := t.lockPage(d.QueueOffset)
	defer t.mu.Unlock()
	t.mu.end = max(t.mu.end, d.QueueOffset+1)
	i := d.QueueOffset % pageSize
	if p.get(i) != Unknown {
		return // replayed, and further than this already
	}
	p.set(i, Undecided)
	p.held++
	e := &entry{first: d.QueueOffset, origin: d.PhysicalOffset, at: d.QueueOffset, physical: d.PhysicalOffset,
		size: d.Size, stored: d.StoreTimestamp}
	t.openLocked(e)
	if t.mu.fresh.push(e) {
		t.alarm.Earlier(t.mu.fresh.next(t.lookAfter()))
	}
}

// arrivedAgain takes note of a half message that was written once more.
func (t *Txn) arrivedAgain(d *storage.Dispatched, first int64) {
	t.lockPage(d.QueueOffset).set(d.QueueOffset%pageSize, Moved)
	t.mu.end = max(t.mu.end, d.QueueOffset+1)
	t.mu.Unlock()
	p := t.lockPage(first)
	defer t.mu.Unlock()
	i := first % pageSize
	if t.mu.open[first] == nil && p.get(i) == GivenUp { // it is taken up again
		p.set(i, Undecided)
		p.held++
		e := &entry{first: first, origin: -1, at: -1, stored: d.StoreTimestamp}
		t.openLocked(e)
		if t.mu.fresh.push(e) {
			t.alarm.Earlier(t.mu.fresh.next(t.lookAfter()))
		}
	}
	t.movedLocked(first, &storage.Placed{QueueOffset: d.QueueOffset, PhysicalOffset: d.PhysicalOffset, Size: d.Size})
}

// movedLocked makes a later copy of a half message the one that counts; an earlier one is done
// with, and so are all when it was decided meanwhile.
func (t *Txn) movedLocked(first int64, to *storage.Placed) {
	e := t.mu.open[first]
	switch {
	case e == nil:
		t.opLocked(to.QueueOffset)
	case to.QueueOffset > e.at:
		if e.at >= 0 {
			t.opLocked(e.at)
		}
		e.at, e.physical, e.size = to.QueueOffset, to.PhysicalOffset, to.Size
		t.touchLocked(e)
		t.mu.order.add(e)
	}
}

// Dispatched notes that what decides a half message is in the log. It reports whether source
// names one.
func (t *Txn) Dispatched(source string) bool {
	to, first, ok := parseSource(source)
	if !ok {
		return strings.HasPrefix(source, sourcePrefix)
	}
	if to == Moved {
		return true // see Arrived
	}
	p := t.lockPage(first)
	t.decidedLocked(p, first, to)
	t.mu.Unlock()
	t.told()
	return true
}

func (t *Txn) decidedLocked(p *page, first int64, to Outcome) {
	t.landLocked(first, to)
	i := first % pageSize
	switch was := p.get(i); {
	case was == Committed || was == RolledBack:
		return // replayed
	case was == GivenUp && to == GivenUp:
		return
	}
	p.set(i, to)
	at := first
	if e := t.mu.open[first]; e != nil {
		at = e.at
		e.gone = true
		delete(t.mu.open, first)
		p.held--
		if e.saved {
			t.mu.dropped = append(t.mu.dropped, first)
		}
	}
	if to != RolledBack { // the decision of that is an op message itself
		t.opLocked(at)
	}
}

// landLocked ends a flight.
func (t *Txn) landLocked(first int64, to Outcome) {
	f := t.mu.flying[first]
	if f == nil || f.to != to {
		return
	}
	delete(t.mu.flying, first)
	if p := t.mu.outcomes.pages[first/pageSize]; p != nil {
		p.held--
	}
}

// told wakes who waits for flights.
func (t *Txn) told() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// fresh is open half messages in the order of their arrival, until they are looked at. Most
// are decided before that, and then never looked at.
type fresh struct {
	list []*entry
	head int
}

// push reports whether e is the first.
func (f *fresh) push(e *entry) bool {
	f.list = append(f.list, e)
	return len(f.list) == f.head+1
}

// next is when the first is to be looked at, 0 when there is none.
func (f *fresh) next(after time.Duration) int64 {
	for f.head < len(f.list) && f.list[f.head].gone {
		f.pop()
	}
	if f.head == len(f.list) {
		return 0
	}
	return f.list[f.head].stored + after.Milliseconds()
}

func (f *fresh) pop() *entry {
	e := f.list[f.head]
	f.list[f.head] = nil
	f.head++
	if f.head == len(f.list) {
		f.list, f.head = f.list[:0], 0
	} else if f.head > 1024 && f.head > len(f.list)/2 {
		n := copy(f.list, f.list[f.head:])
		clear(f.list[n:])
		f.list, f.head = f.list[:n], 0
	}
	return e
}

// dueHeap is open half messages by their next check.
type dueHeap []*entry

// Len implements heap.Interface.
func (h dueHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

// Swap implements heap.Interface.
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(*entry)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}

// next is when the first check is due, 0 when there is none.
func (h dueHeap) next() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[0].due
}
