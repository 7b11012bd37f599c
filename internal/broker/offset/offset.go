// Package offset is the consumer offsets: for each group, topic and queue the offset of
// the next message that the group has not consumed.
//
// Invariants: an offset moves backwards only by command. A commit that rides along with
// a pull (Advance) never moves it back; a request that says so (Commit), a reset and
// Clamp do, and are reported. While a reset waits to be taken nothing else is stored for
// that queue, and a reset is taken once. What is stored here reaches the state database
// at most one flush interval later, and at a clean stop; an offset lost with the process
// repeats messages and never loses one. Deleting a topic or a group deletes its offsets
// there before it returns.
//
// Neighbours: pull and the fronts commit and query, admin resets, clones and deletes,
// broker clamps after recovery. POP keeps its own offsets in pop.
package offset

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// ErrResetPending is the answer to a commit that comes while a reset waits for the
// consumer: the commit speaks of the time before the reset and is not stored.
var ErrResetPending = errors.New("offset has been reset and the consumer has not taken it yet")

// Options is what a table needs; all of it may be zero.
type Options struct {
	State      *state.DB     // nil = memory only
	FlushEvery time.Duration // 0 = 5 s
	Events     Events
	Log        *slog.Logger
}

// Events tells others what happened.
type Events struct {
	// Regressed is called when a request moved an offset backwards.
	Regressed func(group, topic string, queue int32, from, to int64)
	// Changed is called when there is something new for the export, at most once a flush.
	Changed func()
}

type key struct{ group, topic string }

// entry is the offsets of one group in one topic. There may be a hundred thousand: of lite
// topics.
type entry struct {
	mu     sync.Mutex
	spots  []spot // by queue; most have one or a few
	queued bool   // in Table.mu.dirty, or about to be
	gone   bool   // deleted: a late commit must not revive it
}

// spot is how far a group is in one queue.
type spot struct {
	queue  int32
	has    parts // of the following
	dirty  bool  // the database does not know it yet
	offset int64
	reset  int64 // set by command, not yet taken by the consumer
	pulled int64 // where the group pulls now; in memory only
}

// parts say which of a spot's numbers there are.
type parts uint8

const (
	hasOffset parts = 1 << iota
	hasReset
	hasPulled
)

// Table is the offsets of all groups. Locks are taken in the order
// flushing, ordering, Table.mu, entry.mu; only flushing is held across a commit.
type Table struct {
	o  Options
	mu struct {
		sync.RWMutex
		entries map[key]*entry
		dirty   []key // something of them is
	}
	flushing sync.Mutex
	// ordering is held from reading offsets into a batch until the batch is queued, so
	// that an older offset is never queued behind a newer one.
	ordering sync.Mutex
	wake     chan struct{} // there is something to flush
}

// Open returns the table with what was stored.
func Open(o Options) (*Table, error) {
	if o.FlushEvery == 0 {
		o.FlushEvery = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o, wake: make(chan struct{}, 1)}
	t.mu.entries = make(map[key]*entry)
	if err := t.load(); err != nil {
		return nil, err
	}
	return t, nil
}

// Query returns the stored offset of a queue.
func (t *Table) Query(group, topic string, queue int32) (int64, bool) {
	e := t.find(group, topic)
	if e == nil {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.get(queue, hasOffset)
}

// Queues returns all stored offsets of a group in a topic.
func (t *Table) Queues(group, topic string) map[int32]int64 {
	out := make(map[int32]int64)
	if e := t.find(group, topic); e != nil {
		e.mu.Lock()
		e.each(func(s *spot) { out[s.queue] = s.offset })
		e.mu.Unlock()
	}
	return out
}

// Commit stores an offset because a consumer's own request says so, backwards too: that
// is how a consumer seeks and how tools set offsets.
func (t *Table) Commit(group, topic string, queue int32, off int64) error {
	var from int64
	regressed := false
	err := t.with(group, topic, func(e *entry) error {
		if _, pending := e.get(queue, hasReset); pending {
			return ErrResetPending
		}
		old, ok := e.get(queue, hasOffset)
		if ok && old == off {
			return nil
		}
		from, regressed = old, ok && off < old
		e.set(queue, off)
		return nil
	})
	if regressed && t.o.Events.Regressed != nil {
		t.o.Events.Regressed(group, topic, queue, from, off)
	}
	return err
}

// Advance stores an offset that rode along with a pull. One that is behind the stored
// offset is of another time (a consumer that has lost the queue and does not know it
// yet) and changes nothing.
func (t *Table) Advance(group, topic string, queue int32, off int64) {
	_ = t.with(group, topic, func(e *entry) error {
		if _, pending := e.get(queue, hasReset); pending {
			return nil
		}
		if old, ok := e.get(queue, hasOffset); ok && off <= old {
			return nil
		}
		e.set(queue, off)
		return nil
	})
}

// CommitPull remembers where a group pulls now; statistics show it beside the offset.
func (t *Table) CommitPull(group, topic string, queue int32, off int64) {
	e := t.find(group, topic)
	if e == nil {
		e = t.make(group, topic)
	}
	e.mu.Lock()
	s := e.at(queue)
	s.pulled, s.has = off, s.has|hasPulled
	e.mu.Unlock()
}

// QueryPull returns where a group pulls now, or its stored offset when that is not known.
func (t *Table) QueryPull(group, topic string, queue int32) (int64, bool) {
	e := t.find(group, topic)
	if e == nil {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if off, ok := e.get(queue, hasPulled); ok {
		return off, true
	}
	return e.get(queue, hasOffset)
}

// Reset sets an offset by command. The consumer that holds the queue learns of it with
// its next pull or pop, through TakeReset; until then nothing else is stored.
func (t *Table) Reset(group, topic string, queue int32, off int64) {
	_ = t.with(group, topic, func(e *entry) error {
		s := e.at(queue)
		s.reset, s.has = off, s.has&^hasPulled|hasReset
		e.set(queue, off)
		return nil
	})
}

// PendingReset returns the offset that a reset has set, as long as nobody has taken it.
func (t *Table) PendingReset(group, topic string, queue int32) (int64, bool) {
	e := t.find(group, topic)
	if e == nil {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.get(queue, hasReset)
}

// TakeReset returns the offset that a reset has set and ends the reset: it is handed out
// once.
func (t *Table) TakeReset(group, topic string, queue int32) (off int64, ok bool) {
	e := t.find(group, topic)
	if e == nil {
		return 0, false
	}
	e.mu.Lock()
	clean := !e.queued
	if off, ok = e.get(queue, hasReset); ok {
		s := e.at(queue)
		s.has &^= hasReset
		e.touch(s)
	}
	fresh := clean && e.queued
	e.mu.Unlock()
	if fresh {
		t.markDirty(key{group, topic})
	}
	return off, ok
}

// Each calls f for every group and topic that have offsets, with a copy of them.
func (t *Table) Each(f func(group, topic string, offsets map[int32]int64)) {
	t.mu.RLock()
	keys := slices.Collect(maps.Keys(t.mu.entries))
	t.mu.RUnlock()
	for _, k := range keys {
		if offsets := t.Queues(k.group, k.topic); len(offsets) > 0 {
			f(k.group, k.topic, offsets)
		}
	}
}

// Len is the number of groups and topics of which something is known; a few of them may have no
// offset yet, or not any more.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.mu.entries)
}

// TopicsOf returns the topics in which a group has offsets, sorted.
func (t *Table) TopicsOf(group string) []string {
	return t.collect(func(k key) (string, bool) { return k.topic, k.group == group })
}

// GroupsOf returns the groups that have offsets in a topic, sorted.
func (t *Table) GroupsOf(topic string) []string {
	return t.collect(func(k key) (string, bool) { return k.group, k.topic == topic })
}

func (t *Table) collect(pick func(key) (string, bool)) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []string
	for k, e := range t.mu.entries {
		name, ok := pick(k)
		if !ok {
			continue
		}
		e.mu.Lock()
		if e.known() {
			out = append(out, name)
		}
		e.mu.Unlock()
	}
	slices.Sort(out)
	return out
}

// Clamp brings every offset into the range that recovery has found its queue to have: an
// offset behind the end would skip messages that are still to be written (P4). It
// returns how many offsets it moved.
func (t *Table) Clamp(bounds func(topic string, queue int32) (low, high int64)) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved := 0
	for k, e := range t.mu.entries {
		e.mu.Lock()
		clean := !e.queued
		e.each(func(s *spot) {
			if _, high := bounds(k.topic, s.queue); s.offset > high {
				t.o.Log.Warn("consumer offset was behind the end of its queue", "group", k.group, "topic", k.topic,
					"queue", s.queue, "offset", s.offset, "end", high)
				s.offset, s.reset = high, high
				e.touch(s)
				moved++
			}
		})
		if clean && e.queued {
			t.mu.dirty = append(t.mu.dirty, k)
		}
		e.mu.Unlock()
	}
	if moved > 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	return moved
}

// find is where the spot of a queue is, or belongs; the entry's lock is held, as in all that
// follows.
func (e *entry) find(queue int32) (i int, ok bool) {
	return slices.BinarySearchFunc(e.spots, queue, func(s spot, q int32) int { return cmp.Compare(s.queue, q) })
}

// get returns one of a spot's numbers, if it is there.
func (e *entry) get(queue int32, which parts) (int64, bool) {
	i, ok := e.find(queue)
	if !ok || e.spots[i].has&which == 0 {
		return 0, false
	}
	switch s := &e.spots[i]; which {
	case hasReset:
		return s.reset, true
	case hasPulled:
		return s.pulled, true
	default:
		return s.offset, true
	}
}

// at is the spot of a queue, made when there is none; it stays where it is until another is made.
func (e *entry) at(queue int32) *spot {
	i, ok := e.find(queue)
	if !ok {
		e.spots = slices.Insert(e.spots, i, spot{queue: queue})
	}
	return &e.spots[i]
}

// each calls f for the queues that have an offset.
func (e *entry) each(f func(s *spot)) {
	for i := range e.spots {
		if e.spots[i].has&hasOffset != 0 {
			f(&e.spots[i])
		}
	}
}

// known reports whether some queue has an offset.
func (e *entry) known() bool {
	return slices.ContainsFunc(e.spots, func(s spot) bool { return s.has&hasOffset != 0 })
}

// set stores an offset.
func (e *entry) set(queue int32, off int64) {
	s := e.at(queue)
	s.offset, s.has = off, s.has|hasOffset
	e.touch(s)
}

// touch notes that the database does not know s; who finds queued unset before marks e dirty.
func (e *entry) touch(s *spot) { s.dirty, e.queued = true, true }

func (t *Table) find(group, topic string) *entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.entries[key{group, topic}]
}

func (t *Table) make(group, topic string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{group, topic}
	e := t.mu.entries[k]
	if e == nil {
		e = &entry{}
		t.mu.entries[k] = e
	}
	return e
}

// with runs f on the entry under its lock, makes the entry if need be, and marks it for
// the next flush if f changed it.
func (t *Table) with(group, topic string, f func(*entry) error) error {
	for {
		e := t.find(group, topic)
		if e == nil {
			e = t.make(group, topic)
		}
		e.mu.Lock()
		if e.gone { // deleted between find and here
			e.mu.Unlock()
			continue
		}
		clean := !e.queued
		err := f(e)
		first := clean && e.queued
		e.mu.Unlock()
		if first {
			t.markDirty(key{group, topic})
		}
		return err
	}
}

func (t *Table) markDirty(k key) {
	t.mu.Lock()
	t.mu.dirty = append(t.mu.dirty, k)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// DeleteTopic drops all offsets in a topic (R100).
func (t *Table) DeleteTopic(topic string) error {
	return t.commitDrop(func(b *state.Batch) { t.DropTopic(topic, b) })
}

// DeleteGroup drops all offsets of a group (R100).
func (t *Table) DeleteGroup(group string) error {
	return t.commitDrop(func(b *state.Batch) { t.DropGroup(group, b) })
}

// Delete drops the offsets of a group in one topic.
func (t *Table) Delete(group, topic string) error {
	return t.commitDrop(func(b *state.Batch) {
		t.drop(b, func(k key) bool { return k.topic == topic && k.group == group })
	})
}

// DropTopic is DeleteTopic as a part of the caller's batch, which may be nil where there
// is no database.
func (t *Table) DropTopic(topic string, b *state.Batch) {
	lites := names.LitePrefix(topic) // of a parent go with it
	t.drop(b, func(k key) bool { return k.topic == topic || strings.HasPrefix(k.topic, lites) })
}

// DropGroup is DeleteGroup as a part of the caller's batch.
func (t *Table) DropGroup(group string, b *state.Batch) {
	t.drop(b, func(k key) bool { return k.group == group })
}

func (t *Table) commitDrop(f func(b *state.Batch)) error {
	if t.o.State == nil {
		f(nil)
		return nil
	}
	if err := t.o.State.Full(); err != nil { // what f forgets would come back
		return fmt.Errorf("delete consumer offsets: %w", err)
	}
	b := t.o.State.NewBatch()
	f(b)
	if b.Empty() {
		b.Discard()
		return nil
	}
	if err := t.o.State.Commit(b); err != nil {
		return fmt.Errorf("delete consumer offsets: %w", err)
	}
	return nil
}

// drop forgets entries and adds their end to the batch. A flush that is queued before the
// batch may write them, one after it can't: they are no longer found.
func (t *Table) drop(b *state.Batch, match func(key) bool) {
	t.ordering.Lock() // a flush may have read what is deleted here and not queued it yet
	defer t.ordering.Unlock()
	any := false
	t.mu.Lock()
	for k, e := range t.mu.entries {
		if !match(k) {
			continue
		}
		any = true
		e.mu.Lock()
		e.gone = true
		e.mu.Unlock()
		if b != nil {
			b.DeletePrefix(state.Offsets, storeKey(k, 0)[:len(k.group)+len(k.topic)+2])
		}
		delete(t.mu.entries, k)
	}
	t.mu.Unlock()
	if any && t.o.Events.Changed != nil {
		t.o.Events.Changed()
	}
}
