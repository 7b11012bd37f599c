package pop

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// lazily is how long a delivery may wait for its acks before it is committed. A crash
// within it repeats the messages, which a delivery without an ack may always do; and a
// batch that is acked within it never reaches the database as a record.
const lazily = 10 * time.Millisecond

// flushQueue collects what the next commit must hold: windows that changed, and who waits
// for it. Whoever changes a window queues it afterwards; Collect takes the list first and
// looks into the windows then. So a change made before its completion was queued is in the
// commit that the completion waits for, or in an earlier one.
type flushQueue struct {
	mu       sync.Mutex
	dirty    []*window
	waiting  []func(error)
	urgent   bool // the committer knows that it is to call Collect at once
	lazy     bool // or within a while
	sparesOf struct {
		dirty   []*window
		waiting []func(error)
	}

	// Used by Collect and its done only, which never overlap.
	key, value []byte
	low        []lowest
}

type lowest struct {
	w   *window
	off int64
}

// changed queues w; a non-nil done is called after the commit that has what w holds now.
func (p *Popper) changed(w *window, done func(error)) {
	f := &p.flush
	f.mu.Lock()
	if !w.queued {
		w.queued = true
		f.dirty = append(f.dirty, w)
	}
	p.queueLocked(done)
}

// afterCommit calls done after a commit that holds everything that changed before.
func (p *Popper) afterCommit(done func(error)) {
	p.flush.mu.Lock()
	p.queueLocked(done)
}

// queueLocked unlocks flush.mu.
func (p *Popper) queueLocked(done func(error)) {
	f := &p.flush
	if done == nil {
		wait := !f.urgent && !f.lazy
		f.lazy = true
		f.mu.Unlock()
		if wait {
			p.o.State.CommitSourceWithin(p, lazily)
		}
		return
	}
	f.waiting = append(f.waiting, done)
	wake := !f.urgent
	f.urgent = true
	f.mu.Unlock()
	if wake {
		p.o.State.CommitSource(p)
	}
}

// Collect writes what changed into b. The committer calls it.
func (p *Popper) Collect(b *state.Batch) func(error) {
	f := &p.flush
	f.mu.Lock()
	dirty, waiting := f.dirty, f.waiting
	f.dirty, f.sparesOf.dirty = f.sparesOf.dirty[:0], nil
	f.waiting, f.sparesOf.waiting = f.sparesOf.waiting[:0], nil
	f.urgent, f.lazy = false, false
	for _, w := range dirty {
		w.queued = false
	}
	f.mu.Unlock()

	f.low = f.low[:0]
	for _, w := range dirty {
		p.collectWindow(b, w)
	}
	if len(dirty) > 0 {
		f.value = binary.BigEndian.AppendUint64(f.value[:0], uint64(p.lastPop.Load()))
		b.Put(state.Meta, metaLastPop, f.value)
	}
	return func(err error) {
		if err == nil && p.o.Offsets != nil {
			for _, l := range f.low {
				p.o.Offsets.Advance(l.w.key.group, l.w.key.topic, l.w.key.queue, l.off)
			}
		}
		for _, done := range waiting {
			done(err)
		}
		clear(dirty)
		clear(waiting)
		f.mu.Lock()
		f.sparesOf.dirty, f.sparesOf.waiting = dirty[:0], waiting[:0]
		f.mu.Unlock()
	}
}

// Refuse tells those who wait that the disk is full. What has changed stays to be collected;
// who asks next is told anew.
func (p *Popper) Refuse(err error) {
	f := &p.flush
	f.mu.Lock()
	waiting := f.waiting
	f.waiting = nil
	f.urgent, f.lazy = false, false
	f.mu.Unlock()
	for _, done := range waiting {
		done(err)
	}
}

var metaLastPop = []byte("pop.last")

// collectWindow writes next offset, records and what is set aside under one hold of the
// window's mutex, so that they are of one moment (P1).
func (p *Popper) collectWindow(b *state.Batch, w *window) {
	f := &p.flush
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.dropped {
		return
	}
	if w.mu.afterLog {
		w.mu.afterLog = false
		b.AfterLog()
	}
	if w.mu.nextDirty {
		w.mu.nextDirty = false
		f.key = appendWindowKey(f.key[:0], w.key)
		f.value = appendWindowValue(f.value[:0], w.rowLocked())
		b.Put(state.PopWindows, f.key, f.value)
	}
	for i, r := range w.mu.dirty {
		w.mu.dirty[i] = nil
		r.flags &^= flagDirty
		if r.live == 0 && r.flags&flagStored == 0 {
			continue
		}
		f.key = appendRecordKey(f.key[:0], w.id, r.offset(int(r.first)), r.popTime)
		if r.live == 0 {
			b.Delete(state.PopRecords, f.key)
			r.flags &^= flagStored
			continue
		}
		f.value = appendRecordValue(f.value[:0], r, p.holders.name(r.holder))
		b.Put(state.PopRecords, f.key, f.value)
		r.flags |= flagStored
	}
	w.mu.dirty = w.mu.dirty[:0]
	for _, off := range w.mu.asideDirty {
		f.key = appendAsideKey(f.key[:0], w.id, off)
		if at, ok := w.asideAtLocked(off); ok {
			f.value = appendAsideValue(f.value[:0], w.mu.aside[at])
			b.Put(state.PopAside, f.key, f.value)
		} else {
			b.Delete(state.PopAside, f.key)
		}
	}
	w.mu.asideDirty = w.mu.asideDirty[:0]
	if low := w.lowestLocked(); low != w.mu.told {
		w.mu.told = low
		f.low = append(f.low, lowest{w, low})
	}
}
