package pop

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// load rebuilds the windows from the state database.
func (p *Popper) load() error {
	now := p.o.Clock.NowMilli()
	if v, ok, err := p.o.State.Get(state.Meta, metaLastPop); err != nil {
		return err
	} else if ok && len(v) == 8 {
		// The last commit may have missed the deliveries of its last moments. Where the
		// clock was set back meanwhile, the second keeps their names from coming again.
		last := int64(binary.BigEndian.Uint64(v))
		p.lastPop.Store(last)
		if last >= now {
			p.o.Clock.Reach(last + 1000)
			now = p.o.Clock.NowMilli()
			p.ahead = max(last+1000-now, 0)
			p.due.ahead = p.ahead
			now += p.ahead
		}
	}
	p.openedAt = now
	if err := p.o.State.Scan(state.PopWindows, nil, p.loadWindow); err != nil {
		return err
	}
	left := p.o.State.NewBatch()
	if err := p.o.State.Scan(state.PopRecords, nil, func(k, v []byte) error { return p.loadRecord(k, v, left) }); err != nil {
		return err
	}
	if err := p.o.State.Scan(state.PopAside, nil, func(k, v []byte) error { return p.loadAside(k, v, left) }); err != nil {
		return err
	}
	if left.Empty() {
		left.Discard()
		return nil
	}
	p.o.Log.Warn("removing POP records of groups or topics that were deleted")
	return p.o.State.Commit(left)
}

func (p *Popper) loadWindow(key, value []byte) error {
	now := p.openedAt
	k, err := parseWindowKey(key)
	if err != nil {
		return fmt.Errorf("window key %q: %w", key, err)
	}
	row, err := parseWindowValue(value)
	if err != nil {
		return fmt.Errorf("window %v: %w", k, err)
	}
	w := newWindow(k, row.id)
	w.mu.next, w.mu.known, w.mu.floor = row.next, true, now
	p.mu.windows[k] = w
	p.mu.byID[row.id] = w
	p.mu.nextID = max(p.mu.nextID, row.id+1)
	return nil
}

// loadRecord puts a record back as it was, with two exceptions: a client whose presence
// renews its deliveries gets one invisible time to come back; and where the clock was set
// back, nobody waits longer than if it had happened now. A record without a window
// is what was popped while its topic or group was being deleted: the deletion took the
// window, and left gets the rest, so that the next window of that number has none of it.
func (p *Popper) loadRecord(key, value []byte, left *state.Batch) error {
	id, r, holder, err := parseRecord(key, value)
	if err != nil {
		return fmt.Errorf("record %x: %w", key, err)
	}
	w := p.mu.byID[id]
	if w == nil {
		left.Delete(state.PopRecords, key)
		return nil
	}
	due := r.due
	switch {
	case r.flags&flagRenew != 0 && r.flags&flagClaimed == 0:
		due = min(max(due, p.openedAt+r.invisible), p.openedAt+renewedFor(r))
	case r.more != nil && r.more.failures > 0:
		due = min(due, p.openedAt+backoffAfter(r.more.failures-1))
	}
	r.w = w
	r.holder = p.holders.use(holder)
	r.flags |= flagStored
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(r)
	r.flags &^= flagDirty
	w.mu.dirty = w.mu.dirty[:0]
	if r.more != nil && (r.more.group != 0 || r.more.attempts != 0) {
		w.busyLocked(r.more.group, bits.OnesCount64(r.live))
	}
	p.due.set(r, due)
	return nil
}

func (p *Popper) loadAside(key, value []byte, left *state.Batch) error {
	id, e, err := parseAside(key, value)
	if err != nil {
		return fmt.Errorf("message set aside %x: %w", key, err)
	}
	w := p.mu.byID[id]
	if w == nil {
		left.Delete(state.PopAside, key)
		return nil
	}
	w.mu.Lock()
	w.setAsideLocked(e)
	w.mu.asideDirty = w.mu.asideDirty[:0]
	w.mu.Unlock()
	return nil
}

// Dropped is what DropBeyond had to do.
type Dropped struct {
	Windows, Messages int
}

// DropBeyond takes back what points past the recovered end of its queue (P4): the log lost
// its tail in a power cut, and these offsets will be given to other messages. It runs after
// the store was recovered and before requests are accepted.
func (p *Popper) DropBeyond() (Dropped, error) {
	var out Dropped
	for _, w := range p.allWindows() {
		end := p.o.Store.MaxOffset(w.key.topic, w.key.queue)
		w.mu.Lock()
		n := p.dropBeyondLocked(w, end)
		cut := w.mu.next > end
		if cut {
			w.mu.next, w.mu.nextDirty = end, true
		}
		w.mu.Unlock()
		if cut || n > 0 {
			out.Windows++
			out.Messages += n
			p.changed(w, nil)
		}
	}
	answered := make(chan error, 1)
	p.afterCommit(func(err error) { answered <- err })
	if err := <-answered; err != nil {
		return out, err
	}
	p.tellOffsets()
	p.ForgetIdle()
	p.ForgetIdle()
	return out, nil
}

// tellOffsets brings the offset table up to what the windows say: it is stored now and then,
// they with each commit.
func (p *Popper) tellOffsets() {
	if p.o.Offsets == nil {
		return
	}
	for _, w := range p.allWindows() {
		w.mu.Lock()
		low := w.lowestLocked()
		told := low == w.mu.told
		w.mu.told = low
		w.mu.Unlock()
		if !told {
			p.o.Offsets.Advance(w.key.group, w.key.topic, w.key.queue, low)
		}
	}
}

func (p *Popper) dropBeyondLocked(w *window, end int64) (n int) {
	for i, b := range w.mu.blocks {
		if i<<6+63 < end {
			continue
		}
		for _, r := range append([]*record(nil), b.recs...) {
			gone := r.live
			if r.base < end {
				gone &= ^uint64(0) << uint(end-r.base)
			}
			if gone == 0 {
				continue
			}
			n += bits.OnesCount64(gone)
			p.releaseLocked(w, r, gone)
		}
	}
	var gone []int64
	for _, e := range w.mu.aside {
		if e.offset >= end {
			gone = append(gone, e.offset)
		}
	}
	w.takeAsideLocked(gone)
	return n + len(gone)
}
