package storage

import (
	"context"
	"errors"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// write is the loop of the log's writer. When it fails, what it has written since is never
// complete, and nobody is to wait for that.
func (e *Engine) write(ctx context.Context) error {
	defer func() {
		e.dispatching.Lock()
		defer e.dispatching.Unlock()
		e.moved.Broadcast()
	}()
	return e.log.Run(ctx)
}

// dispatch follows the log: what is complete goes into queues and index and becomes
// visible.
func (e *Engine) dispatch(ctx context.Context) error {
	e.dispatcherRuns(true)
	defer e.dispatcherRuns(false)
	for {
		b, err := e.log.Next(ctx)
		if err != nil {
			return nil
		}
		e.dispatching.Lock()
		e.dispatchBatch(b)
		e.dispatching.Unlock()
	}
}

// dispatcherRuns says so between two batches: see settle.
func (e *Engine) dispatcherRuns(yes bool) {
	e.dispatching.Lock()
	e.inline.Store(yes)
	e.moved.Broadcast()
	e.dispatching.Unlock()
}

// inline dispatches on the goroutine that has written a batch.
type inline struct{ e *Engine }

// Begin implements commitlog.Dispatcher: it may only while the dispatcher runs and has nothing
// before the batch to do, which it keeps from anything else until Dispatch.
func (i inline) Begin(b *commitlog.Batch[note]) bool {
	e := i.e
	if !e.inline.Load() || !e.dispatching.TryLock() {
		return false
	}
	if e.log.Done() != b.Entries[0].PhysicalOffset {
		e.dispatching.Unlock()
		return false
	}
	return true
}

// Dispatch implements commitlog.Dispatcher.
func (i inline) Dispatch(b *commitlog.Batch[note]) {
	defer i.e.dispatching.Unlock()
	i.e.dispatchBatch(b)
}

func (e *Engine) dispatchBatch(b *commitlog.Batch[note]) {
	out := e.out[:0]
	keys := false
	for i := range b.Entries {
		entry := &b.Entries[i]
		out = append(out, e.enqueue(&entry.Note, &entry.Placed))
		for _, l := range entry.Note.lights {
			out = append(out, e.enqueueLight(l, &entry.Note, &entry.Placed))
		}
		keys = keys || entry.Note.keys > 0
	}
	e.traits.add(b.Entries)
	if keys {
		e.index.Begin()
		for i := range b.Entries {
			entry := &b.Entries[i]
			if entry.Note.keys > 0 {
				e.addKeys(&entry.Note, &entry.Placed)
			}
		}
		e.index.End()
	}
	e.lastTime.Store(b.Entries[len(b.Entries)-1].StoreTimestamp)
	if e.opt.OnDispatch != nil {
		e.opt.OnDispatch(out)
	}
	// Last, so that who waits for LogMax finds that everybody has been told.
	e.log.Dispatched(b)
	e.moved.Broadcast()
	clear(out)
	e.out = out
	select {
	case e.dirty <- struct{}{}:
	default:
	}
}

// dispatched is what OnDispatch is told of a record.
func (n *note) dispatched(p *Placed) Dispatched {
	d := Dispatched{QueueID: p.QueueID, QueueOffset: p.QueueOffset, PhysicalOffset: p.PhysicalOffset,
		TagsCode: n.tagsCode, StoreTimestamp: p.StoreTimestamp, Size: p.Size, SysFlag: n.sysFlag, Source: n.source, Tag: n.tag, Due: n.due, Relative: n.relative, RealTopic: n.real, Traits: n.traits}
	if n.delay > 0 {
		d.TagsCode = p.StoreTimestamp + n.delay.Milliseconds()
	}
	if n.queue != nil {
		d.Topic = n.queue.Topic.Name
	}
	return d
}

// enqueue puts one record into its queue.
func (e *Engine) enqueue(n *note, p *Placed) Dispatched {
	d := n.dispatched(p)
	q := n.queue
	if q == nil {
		return d
	}
	entry := consumequeue.Entry{Physical: p.PhysicalOffset, Size: p.Size, TagsCode: d.TagsCode}
	err := q.Append(p.QueueOffset, entry)
	var gap *consumequeue.Gap
	if errors.As(err, &gap) {
		// The log gives offsets out without gaps, so this is damage of the log itself. A gap
		// of more records than fit in between is damage of this record's own offset.
		if gap.Got-gap.Max > (p.PhysicalOffset-gap.Physical)/message.HeaderSize {
			e.opt.Log.Error("a record's queue offset can't be true; its queue goes on without it", "at", p.PhysicalOffset, "err", err)
			return d
		}
		e.opt.Log.Error("a queue misses entries; they are filled", "err", err)
		q.Fill(p.QueueOffset)
		if err := q.Append(p.QueueOffset, entry); err != nil {
			panic(err)
		}
	}
	return d
}

// addKeys puts one record's keys into the index.
func (e *Engine) addKeys(n *note, p *Placed) {
	if err := e.index.Put(p.PhysicalOffset, p.StoreTimestamp, n.keyHashes()); err != nil {
		e.breakDerived("key index", err)
	}
}

// breakDerived stops checkpoints: queues or index lack something that a later start has
// to take from the log.
func (e *Engine) breakDerived(what string, err error) {
	if !e.broken.Swap(true) {
		e.opt.Log.Error("no more checkpoints until the next start, which rebuilds from the log", "of", what, "err", err)
	}
}

// CatchUp returns when everything that is written can be read and found by its keys.
func (e *Engine) CatchUp() { e.settle() }

// settle sees to it that what is complete is dispatched. While the dispatcher runs that is
// left to it: it may have a batch in hand, and what comes behind that one must not pass it.
func (e *Engine) settle() {
	e.dispatching.Lock()
	defer e.dispatching.Unlock()
	for end := e.log.Written(); e.inline.Load() && e.log.Done() < end && e.log.Err() == nil; {
		e.moved.Wait()
	}
	if e.inline.Load() {
		return
	}
	for b := e.log.TryNext(); b != nil; b = e.log.TryNext() {
		e.dispatchBatch(b)
	}
}
