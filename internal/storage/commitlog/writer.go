package commitlog

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// refusal is how long appends are refused after a failed write before one is let through
// to try again.
const refusal = time.Second

// taken is what the writer takes at once: all that was pending, and the buffers with it.
type taken[N any] struct {
	*Batch[N]
	chunks []*chunk
	ends   []int64 // how far each chunk was filled
	open   *chunk  // the one of them that is filled further
}

// Run writes what is appended until ctx ends, and what is appended by then. It returns
// an error when the log can't go on.
func (l *Log[N]) Run(ctx context.Context) error {
	var b taken[N]
	for {
		if l.opt.Sync {
			l.gather()
		}
		l.turn.Lock()
		if !l.take(&b) {
			l.turn.Unlock()
			select {
			case <-l.wake:
				continue
			case <-ctx.Done():
				return l.finish(&b)
			}
		}
		err := l.write(&b)
		l.turn.Unlock()
		if err != nil {
			return err
		}
	}
}

// finish writes what is left when the log is being stopped and refuses what comes later.
func (l *Log[N]) finish(b *taken[N]) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	l.mu.failed = ErrClosed
	l.mu.Unlock()
	l.makeRoom()
	for l.take(b) {
		if err := l.write(b); err != nil {
			return err
		}
	}
	if err := l.clean(l.written.Load()); err != nil {
		// The stop is not a clean one, then: the next start cuts what is left.
		l.mu.Lock()
		l.mu.failed = fmt.Errorf("%w: %w", ErrClosed, err)
		l.mu.Unlock()
	}
	return nil
}

// take moves all that is pending into b. When there is nothing, it marks the writer
// asleep: the next append wakes it, once.
func (l *Log[N]) take(b *taken[N]) bool {
	free := l.freeBatch()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.pending.Entries) == 0 {
		l.mu.want, l.mu.asleep = 0, true
		l.out.Lock()
		l.out.free = append(l.out.free, free)
		l.out.Unlock()
		return false
	}
	l.mu.asleep = false
	b.Batch, l.mu.pending = l.mu.pending, free
	// The chunk that was open last time may have been filled further; fresh ones follow.
	b.chunks, b.ends = append(b.chunks[:0], l.mu.fresh...), b.ends[:0]
	for _, c := range b.chunks {
		b.ends = append(b.ends, c.base+int64(c.n))
	}
	clear(l.mu.fresh)
	l.mu.fresh = l.mu.fresh[:0]
	b.open = l.mu.chunk
	if b.open != nil {
		l.mu.fresh = append(l.mu.fresh, b.open)
	}
	return true
}

// write writes a batch, hands the entries on to dispatch and completes them.
func (l *Log[N]) write(b *taken[N]) error {
	if err := l.put(b); err != nil || len(b.Entries) == 0 {
		return err
	}
	n := len(b.Entries)
	l.handOn(b.Batch)
	if l.opt.Sync {
		l.mu.Lock()
		pending := len(l.mu.pending.Entries)
		l.mu.Unlock()
		l.gathering.answered(n, pending)
	}
	l.makeRoom()
	return nil
}

// put writes a batch and syncs where the policy asks for it. What could not be written is in
// the batch no more.
func (l *Log[N]) put(b *taken[N]) error {
	start := time.Now()
	from := l.written.Load()
	err := l.writeChunks(b)
	if l.opt.Written != nil {
		l.opt.Written(len(b.Entries), int(l.written.Load()-from), time.Since(start))
	}
	if err == nil && l.opt.Sync {
		began := time.Now()
		if serr := l.SyncTo(l.written.Load()); serr != nil {
			return l.fail(b, serr)
		}
		l.gathering.synced(time.Since(began))
	}
	if err != nil {
		l.takeBack(b, from, err)
		if len(b.Entries) == 0 {
			return nil
		}
	}
	for _, c := range b.chunks {
		if c != b.open {
			l.ring.unref(c)
		}
	}
	return nil
}

// maxInline is the largest batch that the writer dispatches itself.
const maxInline = 4

// handOn gives complete entries to dispatch and says so to who appended them: the
// dispatcher may work already while the writer calls back. A few that come alone the
// writer dispatches itself.
func (l *Log[N]) handOn(b *Batch[N]) {
	b.users.Store(2)
	alone := l.inline != nil && len(b.Entries) <= maxInline
	if !alone {
		l.queue(b)
	}
	b.complete()
	switch {
	case !alone:
	case l.busy() || !l.inline.Begin(b):
		l.queue(b)
	default:
		l.inline.Dispatch(b)
	}
	l.recycle(b)
}

// complete tells who appended the entries of a batch.
func (b *Batch[N]) complete() {
	for i := range b.Entries {
		if done := b.Entries[i].done; done != nil {
			done(b.Entries[i].Placed, nil)
		}
	}
}

// queue hands b to the dispatcher.
func (l *Log[N]) queue(b *Batch[N]) {
	o := &l.out
	o.Lock()
	o.batches = append(o.batches, b)
	o.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// busy reports whether the writer has more to write.
func (l *Log[N]) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.pending.Entries) > 0
}

// writeChunks writes what of the batch is not written yet, and moves written along.
func (l *Log[N]) writeChunks(b *taken[N]) error {
	for i, c := range b.chunks {
		from, end := max(l.written.Load(), c.base), b.ends[i]
		if from >= end {
			continue
		}
		if !l.set.Has(from) {
			if err := l.set.Create(l.set.Base(from), true); err != nil {
				return err
			}
		}
		if err := l.clean(from); err != nil {
			return err
		}
		l.allocate(from, end)
		if err := l.set.WriteAt(c.buf[from-c.base:end-c.base], from); err != nil {
			l.dirtyTo = max(l.dirtyTo, end)
			return err
		}
		l.written.Store(end)
	}
	return nil
}

// Room is asked for ahead: as much again as the file holds, between these bounds. A small
// store stays small, and a large one asks seldom.
const (
	leastAhead = 1 << 20
	mostAhead  = 128 << 20
)

// allocate asks the file system for room before it is written. A sync then has less to
// record, and a write need not wait while the system finds room for earlier ones: that was
// 7 to 20 ms on ext4. It is a hint: a system that can't, or has no room, says so at the write.
func (l *Log[N]) allocate(from, end int64) {
	if end <= l.allocated {
		return
	}
	base := l.set.Base(from)
	ahead := min(max(end-base, leastAhead), mostAhead)
	l.allocated = min(end+ahead, base+l.opt.Size)
	l.set.Preallocate(from, l.allocated-from)
}

// clean zeroes what a failed write may have left behind at. Without it a crash could
// bring back an append that was answered with an error, or half of one: the next record
// may end exactly where such a leftover begins.
func (l *Log[N]) clean(at int64) error {
	if l.dirtyTo == 0 {
		return nil
	}
	for at < l.dirtyTo {
		if !l.set.Has(at) {
			break
		}
		n := min(l.dirtyTo, l.set.Base(at)+l.opt.Size) - at
		n = min(n, int64(len(zeros)))
		if err := l.set.WriteAt(zeros[:n], at); err != nil {
			return err
		}
		at += n
	}
	l.dirtyTo = 0
	return nil
}

var zeros [1 << 16]byte

// takeBack undoes what of the batch was not written, and everything behind it: nobody has
// been told of it yet. from is where the batch began. Under Sync nothing of the batch
// counts as written, since nothing has synced it. Offsets are given back in reverse
// order, so each queue ends where it was.
func (l *Log[N]) takeBack(b *taken[N], from int64, why error) {
	if vfs.IsNoSpaceError(why) {
		why = fmt.Errorf("%w: %w", ErrFull, why)
	} else {
		why = fmt.Errorf("%w: %w", ErrWrite, why)
	}
	l.mu.Lock()
	all := append(b.Entries, l.mu.pending.Entries...)
	n, end := 0, from
	for !l.opt.Sync && n < len(all) && all[n].PhysicalOffset < l.written.Load() {
		// The end is behind a record, never behind an end-of-file record.
		end = all[n].PhysicalOffset + int64(all[n].Size)
		n++
	}
	for i := len(all) - 1; i >= n; i-- {
		if all[i].next != nil {
			*all[i].next = all[i].QueueOffset
		}
		if all[i].beside != nil {
			for _, c := range *all[i].beside {
				*c.Next = c.Seen
			}
		}
	}
	l.mu.pending.Entries = l.mu.pending.Entries[:0]
	l.mu.fresh = l.mu.fresh[:0]
	l.mu.chunk, b.open = nil, nil
	b.chunks = b.chunks[:0]
	l.mu.end = end
	l.mu.refuse, l.mu.why = time.Now().Add(refusal), why
	l.ring.rewind(end)
	l.dirtyTo = max(l.dirtyTo, l.written.Load())
	l.written.Store(end)
	l.mu.Unlock()
	l.makeRoom()
	l.opt.Log.Warn("the log could not be written; appends are refused for a moment", "at", end, "refused", len(all)-n, "err", why)
	for i := n; i < len(all); i++ {
		if all[i].done != nil {
			all[i].done(Placed{}, why)
		}
	}
	b.Entries = all[:n:n]
}

// fail ends the log after a failed sync: what the disk holds is not known any more, so
// nothing may be answered until the log is read again.
func (l *Log[N]) fail(b *taken[N], why error) error {
	why = fmt.Errorf("log sync failed: %w", why)
	l.mu.Lock()
	entries := append(b.Entries, l.mu.pending.Entries...)
	l.mu.pending = &Batch[N]{}
	l.mu.failed = fmt.Errorf("%w: %w", ErrClosed, why)
	failed := l.mu.failed
	l.mu.Unlock()
	l.makeRoom()
	for i := range entries {
		if entries[i].done != nil {
			entries[i].done(Placed{}, failed)
		}
	}
	return why
}

// SyncTo makes the log durable up to end, which is written.
func (l *Log[N]) SyncTo(end int64) error {
	from := l.synced.Load()
	if from >= end {
		return nil
	}
	start := time.Now()
	if err := l.set.Sync(from, end); err != nil {
		return err
	}
	if l.opt.Synced != nil {
		l.opt.Synced(time.Since(start))
	}
	for {
		old := l.synced.Load()
		if old >= end || l.synced.CompareAndSwap(old, end) {
			return nil
		}
	}
}

// Fail refuses all appends from now on: the flusher's sync has failed.
func (l *Log[N]) Fail(why error) {
	l.mu.Lock()
	if l.mu.failed == nil {
		l.mu.failed = fmt.Errorf("%w: %w", ErrClosed, why)
	}
	l.mu.Unlock()
	l.makeRoom()
}
