package pop

import (
	"math"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// initialize makes sure that every queue that q may read has a window that knows where it
// begins. A group's first request for a topic decides for all of the topic's queues at
// once; a queue that appears later is new, and is read from its beginning.
func (p *Popper) initialize(q *request, counts reach) {
	s := q.s
	if counts == s.started {
		return
	}
	first := true
	for i := range counts[receipt.FlagNormal] {
		first = first && !p.windowOf(s, receipt.FlagNormal, i).started()
	}
	for flag, n := range counts {
		for i := range n {
			w := p.windowOf(s, byte(flag), i)
			if w.started() {
				continue
			}
			mode := InitMin
			if first && flag == int(receipt.FlagNormal) {
				mode = q.InitMode
			}
			p.begin(w, p.start(w, mode))
		}
	}
	s.started = counts
}

func (w *window) started() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.known
}

// start is where a group begins in a queue that it never popped: where it stopped consuming
// by other means, else at the first message, or at the newest: that is the last message
// there is, or all of the queue where its beginning is recent.
func (p *Popper) start(w *window, mode InitMode) int64 {
	low := p.o.Store.MinOffset(w.key.topic, w.key.queue)
	high := max(p.o.Store.MaxOffset(w.key.topic, w.key.queue), low)
	if p.o.Offsets != nil {
		if off, ok := p.o.Offsets.Query(w.key.group, w.key.topic, w.key.queue); ok && off >= 0 {
			return min(max(off, low), high)
		}
	}
	switch {
	case mode == InitMin:
		return low
	case low <= 0 && p.o.InMemory(w.key.topic, w.key.queue):
		return low
	}
	return max(high-1, low)
}

func (p *Popper) begin(w *window, at int64) {
	w.mu.Lock()
	w.mu.next, w.mu.known, w.mu.nextDirty = at, true, true
	w.mu.Unlock()
	p.changed(w, nil)
}

// prepare applies an offset that was moved by other means: by a consumer that pulls, or by
// an administrator; after the latter what was in flight or set aside before is given
// up, and its receipts with it.
func (p *Popper) prepare(w *window) {
	if !w.started() { // its topic was deleted and made anew under this request
		p.begin(w, p.start(w, InitMin))
	}
	if p.o.Offsets == nil {
		return
	}
	off, ok := p.o.Offsets.TakeReset(w.key.group, w.key.topic, w.key.queue)
	if !ok {
		p.catchUp(w)
		return
	}
	low := p.o.Store.MinOffset(w.key.topic, w.key.queue)
	high := max(p.o.Store.MaxOffset(w.key.topic, w.key.queue), low)
	w.mu.Lock()
	p.emptyLocked(w)
	w.mu.next, w.mu.nextDirty = min(max(off, low), high), true
	w.mu.floor = p.fresh()
	w.mu.Unlock()
	p.changed(w, nil)
}

// pendingReset is where the group's next request will find w set by an administrator. Until then w
// is as it was, but for who looks at it: what it has in flight or set aside will come to nothing.
func (p *Popper) pendingReset(w *window) (int64, bool) {
	if p.o.Offsets == nil {
		return 0, false
	}
	return p.o.Offsets.PendingReset(w.key.group, w.key.topic, w.key.queue)
}

// catchUp moves w on to the consumer offset where that is further: POP tells that offset
// its lowest message that is not done, so somebody else has consumed, by pulling.
func (p *Popper) catchUp(w *window) {
	off, ok := p.o.Offsets.Query(w.key.group, w.key.topic, w.key.queue)
	if !ok {
		return
	}
	w.mu.Lock()
	behind := off > w.mu.next && !w.mu.dropped
	w.mu.Unlock()
	if !behind {
		return
	}
	off = min(off, p.o.Store.MaxOffset(w.key.topic, w.key.queue))
	w.mu.Lock()
	if behind = off > w.mu.next && !w.mu.dropped; behind {
		w.mu.epoch++
		w.mu.next, w.mu.nextDirty = off, true
	}
	w.mu.Unlock()
	if behind {
		p.changed(w, nil)
	}
}

// emptyLocked gives up all that w has in flight or set aside.
func (p *Popper) emptyLocked(w *window) {
	w.mu.epoch++
	for _, b := range w.mu.blocks {
		for _, r := range append([]*record(nil), b.recs...) {
			p.releaseLocked(w, r, math.MaxUint64)
		}
	}
	gone := make([]int64, 0, len(w.mu.aside))
	for _, e := range w.mu.aside {
		gone = append(gone, e.offset)
	}
	w.takeAsideLocked(gone)
	w.mu.moved, w.mu.movedLog = nil, nil
}
