// Package state is all small state of a broker in one Pebble database: keyspaces, atomic
// batches, one committer and the sync policy (docs/decisions/0010-one-pebble-database.md).
//
// Invariants: batches commit in the order in which they were submitted, each wholly or
// not at all; done is called once for each, in that order, never under a lock of this
// package; a batch that was answered without an error survives a process crash, and
// under synchronous flush a power cut.
//
// Neighbours: topic, group, offset, timer and pop own one keyspace or more each and
// nobody else's; broker opens it after the log, because BeforeSync is the log's sync.
package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/round"
)

// Space is a keyspace: the first byte of every key in it. Values are never reused.
type Space byte

// The keyspaces. docs/formats/state.md draws the keys and values of each.
const (
	Meta         Space = 'm' // format version and single values of any package
	Topics       Space = 't' // topic
	Groups       Space = 'g' // group
	Offsets      Space = 'o' // offset: what groups have consumed
	PullOffsets  Space = 'p' // offset: broadcast and other client-kept positions
	LightQueues  Space = 'c' // consumequeue: entries of the queues of lite topics
	Timers       Space = 'd' // timer: how far the delay levels are
	Wheel        Space = 'h' // timer: where the messages are that are due at a time of their own
	PopWindows   Space = 'w' // pop: window number and pop offset of a (group, topic, queue)
	PopRecords   Space = 'r' // pop: what is in flight
	PopAside     Space = 'a' // pop: what is set aside
	PopModes     Space = 'q' // admin: request mode of (topic, group)
	Redriven     Space = 'l' // admin: which dead letters were redriven
	Exports      Space = 'x' // config: SHA-256 of exported files
	Transactions Space = 'n' // txn: open half messages, and what became of the others
)

// ErrClosed answers commits after Close.
var ErrClosed = errors.New("state: the database is closed")

// Options are what a database needs.
type Options struct {
	FS  vfs.FS
	Dir string
	// Sync makes every commit durable before it is answered. Otherwise a commit is in the
	// kernel's hands when it is answered, and one sync per SyncInterval makes it durable.
	Sync         bool
	SyncInterval time.Duration // default 500 ms
	// BeforeSync, if set, is called before anything becomes durable here. The broker makes
	// the log durable in it, so that after a power cut this database never knows more than
	// the log (a lapsed delivery's record never goes without its copy).
	BeforeSync func() error
	// Reserve is how much of the disk is kept for the moment in which it is full; 16 MiB
	// when zero.
	Reserve int64
	// Rounds are those in which submissions need not wake the committer; nil for none.
	Rounds *round.Rounds
	Log    *slog.Logger
}

// Source writes its part of a commit as late as possible: the committer calls Collect
// when it is free, so whatever happened since the last commit shares one batch.
type Source interface {
	// Collect adds writes to b and returns what is to be called with the outcome.
	Collect(b *Batch) (done func(error))
}

// Bulk is a Source that may have very much to write. The committer loop collects it, and never
// somebody who ends a round, for whom that would take too long.
type Bulk interface {
	Source
	Bulk()
}

// Refuser is a Source with somebody who waits for its commit. While the disk is full, Refuse
// is called in place of Collect: it tells them, and keeps what was to be written. The source
// is collected by itself when there is room.
type Refuser interface {
	Refuse(err error)
}

// DB is the database. Create it with Open, run its Loops.
//
// One goroutine at a time commits: the committer loop, or, before it starts and after it
// ends (recovery, tests), whoever submits. mu guards the queue and is never held across a
// commit or a call of done.
type DB struct {
	p    *pebble.DB
	wal  *walFS
	room *room
	opts Options
	wake chan struct{}
	// failed is set by the first commit that Pebble refused, and final.
	failed     atomic.Pointer[error]
	ended      chan struct{} // closed then
	applying   atomic.Bool   // a commit is with Pebble
	complained atomic.Int64  // second of the last complaint about a flush
	mu         struct {
		sync.Mutex
		queue   []submission
		spare   []submission
		running bool // the loop will take what is queued
		busy    bool // somebody commits now
		closed  bool
		bulk    bool                 // there is a Bulk in the queue
		sources map[Source]struct{}  // sources that are in the queue
		lazy    map[Source]time.Time // sources that wait for company, at most until then
		held    map[Source]struct{}  // sources that wait for room on the disk
	}
}

// submission is one entry of the queue: a batch or a source.
type submission struct {
	batch  *Batch
	source Source
	done   func(error)
}

// Loop is one of the goroutines that the database needs.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

// Open opens or creates the database in o.Dir.
func Open(o Options) (*DB, error) {
	if o.SyncInterval <= 0 {
		o.SyncInterval = 500 * time.Millisecond
	}
	if o.Reserve <= 0 {
		o.Reserve = reserveSize
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := newRoom(o)
	w := newWALFS(vfs.OnDiskFull(o.FS, r.hit), o.Sync, o.BeforeSync)
	d := &DB{wal: w, room: r, opts: o, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	o.Rounds.Wake(d.poke)
	d.mu.sources = make(map[Source]struct{})
	d.mu.lazy = make(map[Source]time.Time)
	d.mu.held = make(map[Source]struct{})
	r.refused, w.die = d.refuseQueued, d.die
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("open the state database in %s: %w", o.Dir, err)
	}
	if err := d.verify(); err != nil {
		return nil, fmt.Errorf("open the state database in %s: %w", o.Dir, err)
	}
	if err := d.openPebble(); err != nil {
		return nil, fmt.Errorf("open the state database in %s: %w", o.Dir, d.explain(err))
	}
	return d, nil
}

// openPebble turns what Pebble calls fatal into an error too. What is fatal to one of its
// flushes leaves Open waiting for ever, so it is called beside.
func (d *DB) openPebble() error {
	full := func() { d.fail(ErrFull) }
	d.room.opening.Store(&full)
	defer d.room.opening.Store(nil)
	opened := make(chan error, 1)
	lifecycle.New(d.opts.Log).Go("open the state database", func(context.Context) error {
		opened <- d.callOpen()
		return nil
	})
	select {
	case err := <-opened:
		return err
	case <-d.ended:
		return *d.failed.Load()
	}
}

func (d *DB) callOpen() (err error) {
	defer recovered(&err)
	p, err := pebble.Open(d.opts.Dir, pebbleOptions(d.wal, d))
	d.p = p
	return err
}

// Full is ErrFull while the disk has no room for commits. Who changes memory before it
// commits asks first.
func (d *DB) Full() error {
	if d.room.full.Load() {
		return ErrFull
	}
	return nil
}

// Look is Full after a look at the disk, for who asks while nobody commits.
func (d *DB) Look() error {
	if !d.room.refuses() {
		return nil
	}
	d.poke() // the loop has to look for room from now on
	return ErrFull
}

// Loops are the committer and, under asynchronous flush, the loop of the real syncs.
// Until they run, commits happen on the goroutine that submits them.
func (d *DB) Loops() []Loop {
	loops := []Loop{{Name: "state committer", Run: d.Run}}
	if !d.opts.Sync {
		loops = append(loops, Loop{Name: "state syncer", Run: d.RunSync})
	}
	return loops
}

// Get returns a copy of the value of key, and whether there is one.
func (d *DB) Get(s Space, key []byte) ([]byte, bool, error) {
	v, closer, err := d.p.Get(spaced(s, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read state: %w", d.explain(err))
	}
	out := append([]byte(nil), v...)
	return out, true, closer.Close()
}

// Scan calls each for all keys of the space that begin with prefix, in order. Key (without
// the space) and value are valid during the call only.
func (d *DB) Scan(s Space, prefix []byte, each func(key, value []byte) error) error {
	return d.ScanFrom(s, prefix, prefix, each)
}

// ScanFrom is Scan that begins at the key from.
func (d *DB) ScanFrom(s Space, prefix, from []byte, each func(key, value []byte) error) (err error) {
	it, err := d.p.NewIter(&pebble.IterOptions{LowerBound: spaced(s, from), UpperBound: after(spaced(s, prefix))})
	if err != nil {
		return fmt.Errorf("scan state: %w", d.explain(err))
	}
	defer func() {
		if cerr := it.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("scan state: %w", d.explain(cerr))
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan state: %w", d.explain(err))
		}
		if err := each(it.Key()[1:], v); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("scan state: %w", d.explain(err))
	}
	return nil
}

// Sync makes everything durable that was answered so far, whatever the policy. One that fails is
// the end, as it is for the log: what the disk holds is not known any more, a later sync that
// succeeds would prove nothing, and nobody would be told of what is lost with the power.
func (d *DB) Sync() error {
	if failed := d.failed.Load(); failed != nil {
		return *failed
	}
	if err := d.wal.syncAll(); err != nil {
		return d.fail(fmt.Errorf("sync state: %w", err))
	}
	return nil
}

// Close commits what is queued, syncs and closes. The loops must have ended. After a
// failed commit Pebble may hold locks for ever, and without any room it would fail while it
// closes; its files are then left to the next start, which reads them as after a crash.
func (d *DB) Close() (err error) {
	d.mu.Lock()
	if d.mu.closed {
		d.mu.Unlock()
		return nil
	}
	d.mu.Unlock()
	d.drain()
	d.mu.Lock()
	d.mu.closed = true
	d.mu.Unlock()
	d.room.giveUp()
	if failed := d.failed.Load(); failed != nil {
		return *failed
	}
	if err := d.wal.syncAll(); err != nil || !d.room.writable() {
		return err
	}
	defer recovered(&err)
	return errors.Join(d.p.Close(), d.wal.failure())
}

// Stats are a few figures of the database for the admin and for tests.
type Stats struct {
	DiskBytes     uint64
	MemTableBytes uint64
}

// Stats returns the figures of now.
func (d *DB) Stats() Stats {
	m := d.p.Metrics()
	return Stats{DiskBytes: m.DiskSpaceUsage(), MemTableBytes: m.MemTable.Size}
}

func spaced(s Space, key []byte) []byte {
	k := make([]byte, 1+len(key))
	k[0] = byte(s)
	copy(k[1:], key)
	return k
}

// after is the first key behind all that begin with prefix; nil means the end.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
