package pop

import (
	"sync"

	"github.com/bolidemq/bolide/internal/clock"
)

// dueHeap holds every record that waits for its due time, the earliest first. A record's
// due field is written under both its window's mutex and mu, so either suffices to read.
type dueHeap struct {
	alarm *clock.Alarm
	ahead int64 // Popper.ahead
	mu    sync.Mutex
	recs  []dueEntry
}

type dueEntry struct {
	due int64
	rec *record
}

// set gives rec a new due time and puts it into the heap if it is not in it.
func (h *dueHeap) set(rec *record, due int64) {
	h.mu.Lock()
	rec.due = due
	if rec.heapPos < 0 {
		rec.heapPos = int32(len(h.recs))
		h.recs = append(h.recs, dueEntry{due, rec})
		h.up(int(rec.heapPos))
	} else {
		i := int(rec.heapPos)
		h.recs[i].due = due
		h.down(i)
		h.up(int(rec.heapPos))
	}
	first := rec.heapPos == 0
	h.mu.Unlock()
	if first {
		h.ring(due)
	}
}

// ring has the alarm ring at due, a time of deliveries, or before it.
func (h *dueHeap) ring(due int64) { h.alarm.Earlier(max(due-h.ahead, 1)) }

func (h *dueHeap) remove(rec *record) {
	h.mu.Lock()
	if rec.heapPos >= 0 {
		h.removeLocked(int(rec.heapPos))
	}
	h.mu.Unlock()
}

func (h *dueHeap) removeLocked(i int) {
	last := len(h.recs) - 1
	h.recs[i].rec.heapPos = -1
	if i != last {
		moved := h.recs[last]
		h.recs[i] = moved
		moved.rec.heapPos = int32(i)
	}
	h.recs[last] = dueEntry{}
	h.recs = h.recs[:last]
	if i != last {
		h.down(i)
		h.up(i)
	}
}

// take appends up to n records that are due at now to dst, out of the heap.
func (h *dueHeap) take(dst []*record, now int64, n int) []*record {
	h.mu.Lock()
	for ; n > 0 && len(h.recs) > 0 && h.recs[0].due <= now; n-- {
		dst = append(dst, h.recs[0].rec)
		h.removeLocked(0)
	}
	h.mu.Unlock()
	return dst
}

// holds reports whether rec waits for its due time.
func (h *dueHeap) holds(rec *record) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return rec.heapPos >= 0
}

// next is the earliest due time, 0 if there is none.
func (h *dueHeap) next() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recs) == 0 {
		return 0
	}
	return max(h.recs[0].due, 1)
}

func (h *dueHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 4
		if h.recs[i].due >= h.recs[parent].due {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *dueHeap) down(i int) {
	for {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < len(h.recs); c++ {
			if h.recs[c].due < h.recs[least].due {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *dueHeap) swap(i, j int) {
	h.recs[i], h.recs[j] = h.recs[j], h.recs[i]
	h.recs[i].rec.heapPos, h.recs[j].rec.heapPos = int32(i), int32(j)
}
