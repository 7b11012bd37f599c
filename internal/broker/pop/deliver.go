package pop

import (
	"math/bits"
	"slices"
)

// deliver makes the taken messages' records and moves the window, all at one moment (P1).
func (t *taking) deliver(wasFull bool) int {
	p, w := t.p, t.w
	w.mu.Lock()
	if w.mu.epoch != t.epoch || w.mu.dropped {
		w.mu.Unlock() // reset, deleted or read by others meanwhile: what was read means nothing
		t.a.missed = true
		return 0
	}
	w.mu.epoch++
	if len(t.a.res.Batches) == 0 && len(t.records) > 0 {
		// Invisible times begin now, not when the search began.
		t.a.res.PopTime = max(t.a.res.PopTime, p.now())
	}
	popTime := max(t.a.res.PopTime, t.minPop)
	if popTime > t.a.res.PopTime {
		// The whole answer has one popTime. Batches of other queues have it already, and
		// their names stay unique: it is only later than now.
		if len(t.a.res.Batches) > 0 {
			popTime = t.a.res.PopTime
			t.dropEarlyLocked(popTime)
		}
		t.a.res.PopTime = popTime
	}
	moved := t.next != w.mu.next || len(t.passed)+len(t.aside) > 0
	if t.next != w.mu.next {
		w.mu.next, w.mu.nextDirty = t.next, true
	}
	for i := range t.learned {
		if at, there := w.asideAtLocked(t.learned[i].offset); there {
			w.mu.aside[at].know(&t.learned[i])
		}
	}
	w.takeAsideLocked(t.passed)
	stuck := w.mu.stuck && t.order != nil // what comes behind is stuck as well
	for _, e := range t.aside {
		w.setAsideLocked(e)
	}
	w.mu.stuck = stuck
	if len(t.records) > 0 {
		t.recordLocked(popTime)
	}
	w.mu.Unlock()
	if moved {
		p.changed(w, nil)
	}
	if wasFull && len(t.passed) > len(t.aside) {
		t.a.roomAgain = true
	}
	if len(t.aside) > 0 && t.order == nil {
		t.wakeOthers()
	}
	if len(t.records) == 0 {
		return 0
	}
	t.a.res.Batches = append(t.a.res.Batches, Batch{
		RetryFlag: w.flag, QueueID: w.key.queue, StartOffset: t.records[0].QueueOffset,
		Records: t.records, Attempts: t.counts,
	})
	return len(t.records)
}

// dropEarlyLocked leaves what can't be delivered under popTime, since it was delivered
// under that or a later one, for the next request.
func (t *taking) dropEarlyLocked(popTime int64) {
	late := make(map[int64]bool)
	for _, e := range t.w.mu.aside {
		if e.lastPop >= popTime {
			late[e.offset] = true
		}
	}
	kept, keys, counts := t.records[:0:0], t.keys[:0:0], t.counts[:0:0]
	for i, rec := range t.records {
		if late[rec.QueueOffset] {
			continue
		}
		kept = append(kept, rec)
		if t.order != nil {
			keys, counts = append(keys, t.keys[i]), append(counts, t.counts[i])
		}
	}
	t.records, t.keys, t.counts = kept, keys, counts
	t.passed = slices.DeleteFunc(t.passed, func(o int64) bool { return late[o] })
}

// recordLocked makes one record per block of 64 offsets, and per message group when
// ordered.
func (t *taking) recordLocked(popTime int64) {
	w, q := t.w, t.q
	var r *record
	for i := range t.records {
		off := t.records[i].QueueOffset
		if r == nil || off&^63 != r.base || t.order != nil && (t.keys[i] != r.more.group || t.counts[i] != r.more.attempts) {
			t.p.startLocked(w, r)
			r = newRecord(w, off, popTime, q.Invisible)
			r.holder = t.p.holders.use(q.Holder)
			if q.AutoRenew && q.Holder != "" {
				r.flags |= flagRenew
			}
			if t.order != nil {
				r.more = &recordMore{group: t.keys[i], attempts: t.counts[i], attempt: q.AttemptID}
			}
		}
		r.live |= 1 << (off & 63)
	}
	t.p.startLocked(w, r)
}

// startLocked puts a finished record in flight. Its name counts before it can be committed:
// the commit holds lastPop, too.
func (p *Popper) startLocked(w *window, r *record) {
	if r == nil {
		return
	}
	p.raiseLastPop(r.popTime)
	w.addLocked(r)
	if r.more != nil && r.more.group != 0 {
		w.busyLocked(r.more.group, bits.OnesCount64(r.live))
	}
	p.due.set(r, r.popTime+r.invisible)
}

// fresh is a time later than every delivery's name so far. The commits from here on say so,
// and after a restart no name is earlier, wherever the clock is then.
func (p *Popper) fresh() int64 {
	p.raiseLastPop(p.now())
	return p.lastPop.Load() + 1
}

func (p *Popper) raiseLastPop(t int64) {
	for last := p.lastPop.Load(); t > last && !p.lastPop.CompareAndSwap(last, t); {
		last = p.lastPop.Load()
	}
}
