package offset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// The keys of the keyspace state.Offsets; docs/formats/state.md draws them:
//
//	group, 0, topic, 0, queue (4 bytes, big endian) → offset (8 bytes), or offset and the
//	offset of a reset that waits to be taken (16 bytes)
func storeKey(k key, queue int32) []byte {
	b := make([]byte, 0, len(k.group)+len(k.topic)+6)
	b = append(append(b, k.group...), 0)
	b = append(append(b, k.topic...), 0)
	return binary.BigEndian.AppendUint32(b, uint32(queue))
}

func parseKey(b []byte) (k key, queue int32, ok bool) {
	group, rest, ok := bytes.Cut(b, []byte{0})
	if !ok || len(rest) < 5 || rest[len(rest)-5] != 0 {
		return key{}, 0, false
	}
	at := len(rest) - 5
	return key{string(group), string(rest[:at])}, int32(binary.BigEndian.Uint32(rest[at+1:])), true
}

// load fills the table from the database.
func (t *Table) load() error {
	if t.o.State == nil {
		return nil
	}
	return t.o.State.Scan(state.Offsets, nil, func(k, v []byte) error {
		name, queue, ok := parseKey(k)
		if !ok || len(v) != 8 && len(v) != 16 {
			return fmt.Errorf("stored offset %q is malformed", k)
		}
		e := t.mu.entries[name]
		if e == nil {
			e = &entry{}
			t.mu.entries[name] = e
		}
		s := e.at(queue)
		s.offset, s.has = int64(binary.BigEndian.Uint64(v)), hasOffset
		if len(v) == 16 {
			s.reset, s.has = int64(binary.BigEndian.Uint64(v[8:])), hasOffset|hasReset
		}
		return nil
	})
}

// put adds one queue of an entry to the batch; the entry's lock is held.
func (e *entry) put(b *state.Batch, k key, queue int32) {
	off, ok := e.get(queue, hasOffset)
	if !ok {
		b.Delete(state.Offsets, storeKey(k, queue))
		return
	}
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(off))
	if reset, pending := e.get(queue, hasReset); pending {
		v = binary.BigEndian.AppendUint64(v, uint64(reset))
	}
	b.Put(state.Offsets, storeKey(k, queue), v)
}

// Flush writes what has changed since the last flush.
func (t *Table) Flush() error {
	t.flushing.Lock() // two flushes would write in any order, an older offset last
	defer t.flushing.Unlock()
	t.mu.Lock()
	dirty := t.mu.dirty
	t.mu.dirty = nil
	t.mu.Unlock()
	if len(dirty) == 0 {
		return nil
	}
	if t.o.State != nil {
		committed := make(chan error, 1)
		t.ordering.Lock()
		t.o.State.CommitAsync(t.collectDirty(dirty), func(err error) { committed <- err })
		t.ordering.Unlock()
		t.o.State.Announce()
		if err := <-committed; err != nil {
			t.mu.Lock()
			for _, k := range dirty {
				if e := t.mu.entries[k]; e != nil && e.touchAll() {
					t.mu.dirty = append(t.mu.dirty, k)
				}
			}
			t.mu.Unlock()
			return fmt.Errorf("store consumer offsets: %w", err)
		}
	}
	if t.o.Events.Changed != nil {
		t.o.Events.Changed()
	}
	return nil
}

func (t *Table) collectDirty(dirty []key) *state.Batch {
	b := t.o.State.NewBatch()
	for _, k := range dirty {
		t.mu.RLock()
		e := t.mu.entries[k]
		t.mu.RUnlock()
		if e == nil {
			continue // deleted since
		}
		e.mu.Lock()
		for i := range e.spots {
			if s := &e.spots[i]; s.dirty && !e.gone {
				e.put(b, k, s.queue)
				s.dirty = false
			}
		}
		e.queued = false
		e.mu.Unlock()
	}
	return b
}

// touchAll marks every queue for the next flush, after one that failed. It reports whether e
// was not marked already.
func (e *entry) touchAll() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	clean := !e.queued
	e.each(e.touch)
	return clean && e.queued
}

// CommitThen is Commit for a consumer that waits for the answer: done is called when the
// offset is as durable as the flush policy asks, so what was answered with OK does not
// come back after a crash.
func (t *Table) CommitThen(group, topic string, queue int32, off int64, done func(error)) {
	err := t.Commit(group, topic, queue, off)
	if err != nil || t.o.State == nil {
		done(err)
		return
	}
	e := t.find(group, topic)
	if e == nil {
		done(nil) // deleted in between
		return
	}
	b := t.o.State.NewBatch()
	t.ordering.Lock()
	e.mu.Lock()
	gone := e.gone
	if !gone {
		e.put(b, key{group, topic}, queue)
	}
	e.mu.Unlock()
	if !gone {
		t.o.State.CommitAsync(b, done)
	}
	t.ordering.Unlock()
	if gone {
		b.Discard()
		done(nil)
	}
}

// Run flushes one interval after something has changed, until ctx ends, and once more
// then.
func (t *Table) Run(ctx context.Context) error {
	timer := time.NewTimer(t.o.FlushEvery)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), t.Flush())
		case <-t.wake:
			timer.Reset(t.o.FlushEvery)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), t.Flush())
		case <-timer.C:
			switch err := t.Flush(); {
			case errors.Is(err, state.ErrFull): // it stays to be flushed
				timer.Reset(t.o.FlushEvery)
				select {
				case t.wake <- struct{}{}:
				default:
				}
			case err != nil:
				return err
			}
		}
	}
}
