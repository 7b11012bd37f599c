package pop

import (
	"encoding/binary"
	"fmt"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// The queues of lite topics are many, and most of them asleep. A group's window of one that
// has nothing in flight, set aside or to be written, and was not looked at for a while, is
// let go of (ForgetIdle): its row in the state database says where it was, and revisit reads
// that when somebody comes. What lapsed keeps the window until its receipts have ended, and all
// else was acked; of what was popped before the window's floor nobody knows how it ended, which
// the row says, too. So an ack that is said again is answered as before.

// sweepAfter is how many windows of lite topics are made, at least, before those that are idle
// are looked for: whoever drains a hundred thousand lite topics has few of them in memory.
const sweepAfter = 1024

// revisit makes the window of a lite topic's queue that was let go of; nil when the group
// never had one, or it is no such queue. The caller holds no lock.
func (p *Popper) revisit(k windowKey) *window {
	if !names.IsLite(k.topic) {
		return nil
	}
	row, ok, err := p.o.State.Get(state.PopWindows, appendWindowKey(nil, k))
	if err != nil || !ok {
		if err != nil {
			p.o.Log.Error("the window of a lite topic could not be read", "group", k.group, "queue", k.topic, "err", err)
		}
		return nil
	}
	was, err := parseWindowValue(row)
	if err != nil {
		p.o.Log.Error("the window of a lite topic can't be read", "group", k.group, "queue", k.topic, "err", err)
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.mu.windows[k]; w != nil {
		return w
	}
	w := newWindow(k, was.id)
	w.mu.next, w.mu.known, w.mu.floor = was.next, true, max(p.openedAt, was.floor)
	p.addLocked(w)
	return w
}

// addLocked puts a window that was made now into the tables.
func (p *Popper) addLocked(w *window) {
	p.mu.windows[w.key] = w
	p.mu.byID[w.id] = w
	if !names.IsLite(w.key.topic) {
		return
	}
	if p.mu.made++; p.mu.made >= p.mu.sweepAt {
		p.mu.made = 0
		p.Go(func(closing bool) {
			if !closing {
				p.ForgetIdle()
			}
		})
	}
}

// ForgetIdle lets go of the windows of lite topics that were idle since it was last called.
func (p *Popper) ForgetIdle() {
	now := p.now()
	kept := 0
	for _, w := range p.allWindows() {
		if names.IsLite(w.key.topic) && !p.forgetIdle(w, now) {
			kept++
		}
	}
	p.mu.Lock()
	p.mu.sweepAt = max(sweepAfter, kept/2)
	p.mu.Unlock()
}

// forgetIdle lets go of one window if it may.
func (p *Popper) forgetIdle(w *window, now int64) (gone bool) {
	s := p.subject(subjectKey{w.key.group, w.key.topic})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held || len(s.waiting) > 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	p.flush.mu.Lock()
	queued := w.queued
	p.flush.mu.Unlock()
	for w.forgetLocked(now); len(w.mu.movedLog) > 0 && w.mu.movedLog[0].until <= now; {
		w.forgetLocked(now)
	}
	busy := queued || w.mu.dropped || !w.mu.known || w.mu.nextDirty || w.mu.inFlight > 0 ||
		len(w.mu.aside)+len(w.mu.dirty)+len(w.mu.asideDirty)+len(w.mu.movedLog) > 0
	if idle := w.mu.idle; busy || !idle {
		w.mu.idle = !busy
		return false
	}
	w.mu.dropped = true
	delete(p.mu.windows, w.key)
	delete(p.mu.byID, w.id)
	if p.mu.subjects[s.key] == s {
		s.gone = true
		delete(p.mu.subjects, s.key)
	}
	return true
}

// ForgetQueue deletes all that a group has of a lite topic's queue, which is gone. Its
// receipts are illegal afterwards.
func (p *Popper) ForgetQueue(group, queue string) error {
	k := windowKey{group: group, topic: queue}
	w := p.window(k)
	if w == nil {
		if w = p.revisit(k); w == nil {
			return nil
		}
	}
	p.mu.Lock()
	p.mu.floor = max(p.mu.floor, p.fresh())
	delete(p.mu.windows, k)
	delete(p.mu.byID, w.id)
	delete(p.mu.subjects, subjectKey{group, queue})
	p.mu.Unlock()
	b := p.o.State.NewBatch()
	p.dropWindow(w, b)
	if err := p.o.State.Commit(b); err != nil {
		return fmt.Errorf("delete the POP state of group %s in %s: %w", group, queue, err)
	}
	return nil
}

// dropWindow ends a window that is in no table any more.
func (p *Popper) dropWindow(w *window, b *state.Batch) {
	w.mu.Lock()
	w.mu.dropped = true
	p.emptyLocked(w)
	w.mu.dirty, w.mu.asideDirty = nil, nil
	w.mu.Unlock()
	dropRows(b, w.key, w.id)
}

func dropRows(b *state.Batch, k windowKey, id uint32) {
	b.Delete(state.PopWindows, appendWindowKey(nil, k))
	prefix := binary.BigEndian.AppendUint32(nil, id)
	b.DeletePrefix(state.PopRecords, prefix)
	b.DeletePrefix(state.PopAside, prefix)
}

// dropForgotten adds to b the end of windows that were let go of.
func (p *Popper) dropForgotten(b *state.Batch, match func(windowKey) bool) {
	err := p.o.State.Scan(state.PopWindows, nil, func(key, value []byte) error {
		k, err := parseWindowKey(key)
		if err != nil || !names.IsLite(k.topic) || !match(k) {
			return nil
		}
		if row, err := parseWindowValue(value); err == nil && p.window(k) == nil {
			dropRows(b, k, row.id)
		}
		return nil
	})
	if err != nil {
		p.o.Log.Error("the windows of lite topics could not be read", "err", err)
	}
}

// LiteWindows is how many windows of lite topics are in memory, and how many of those have
// something in flight.
func (p *Popper) LiteWindows() (all, busy int) {
	for _, w := range p.allWindows() {
		if !names.IsLite(w.key.topic) {
			continue
		}
		all++
		w.mu.Lock()
		if w.mu.inFlight > 0 {
			busy++
		}
		w.mu.Unlock()
	}
	return all, busy
}

// AfterCommit calls done after a commit that holds everything that changed before.
func (p *Popper) AfterCommit(done func(error)) { p.afterCommit(done) }
