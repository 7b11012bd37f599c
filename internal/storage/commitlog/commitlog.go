// Package commitlog is the one log: records of all topics in the order of their arrival.
//
// Invariants: one writer; offsets have no gaps but end-of-file records; store times never
// run backwards; a record is handed on to dispatch only when it is as durable as the
// flush policy asks; after a torn tail is cut, or a write has failed, everything behind
// the end is zero before anything is appended there. Neighbours: storage.
package commitlog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// What an append can be answered beside success.
var (
	ErrBusy   = errors.New("the open buffers stayed full") // until the deadline
	ErrClosed = errors.New("log closed")                   // or failed
	ErrWrite  = errors.New("log write failed")             // wraps what the file system said
	ErrFull   = errors.New("disk full")                    // the same for lack of room
	ErrTooBig = errors.New("does not fit into a log file")
	ErrMoved  = errors.New("a queue went on since its offset was seen")
)

// Options is what a log needs.
type Options struct {
	Pool    *segment.Pool
	Dir     string
	Size    int64         // of a file
	Sync    bool          // complete appends after the sync instead of after the write
	MaxOpen int64         // bytes appended and not yet written and dispatched
	Keep    int64         // dispatched bytes that stay in memory for readers at the end
	Chunk   int           // size of one buffer
	Busy    time.Duration // how long Append waits for room
	Now     func() int64  // ms
	Rounds  *round.Rounds // while one is open, held appends do not wake the writer; nil: never
	Log     *slog.Logger
	Written func(records, bytes int, took time.Duration) // may be nil
	Synced  func(took time.Duration)                     // may be nil
}

// Placed is where a record ended up.
type Placed struct {
	PhysicalOffset int64
	QueueOffset    int64
	StoreTimestamp int64
	QueueID        int32
	Size           int32
}

// Entry is a record on its way from the append to its dispatch. Note is what the caller
// of Append wants to know again when it is dispatched.
type Entry[N any] struct {
	Placed
	Note N

	next   *int64
	beside *[]Counter
	done   func(Placed, error)
}

// Counter is a queue's next offset as an encoder of a record has seen it.
type Counter struct {
	Next *int64
	Seen int64
}

// Batch is entries that became complete together. The writer, while it calls back, and
// the dispatcher both hold it; it is used again when both are through.
type Batch[N any] struct {
	Entries []Entry[N]
	users   atomic.Int32
}

// End is the log offset behind the last entry.
func (b *Batch[N]) End() int64 {
	e := &b.Entries[len(b.Entries)-1]
	return e.PhysicalOffset + int64(e.Size)
}

// Log is the open log.
//
// mu guards the end of the log and is held for memory operations alone: offsets and
// store time are given out and the record is copied into the open buffer under it. The
// queue offsets that Append is pointed to are guarded by it as well.
//
// What was appended is in mu.pending until the writer takes all of it, writes it with as
// few writes as there are buffers, and completes it in order. Pending entries and buffers
// are taken in one critical section, so they always end at the same offset.
type Log[N any] struct {
	opt Options
	set *segment.Set
	mu  struct {
		sync.Mutex
		end      int64 // where the next record goes
		lastTime int64
		chunk    *chunk // open buffer, nil at the start of a file
		fresh    []*chunk
		pending  *Batch[N]
		room     chan struct{} // closed when there is more room; nil when nobody waits
		refuse   time.Time     // after a failed write, until when appends are refused
		why      error         // and with what
		failed   error         // for good
		asleep   bool          // the writer waits for wake; else it comes by itself, or somebody owes it a wake-up
		want     int           // and for that many pending appends
	}
	ring    ring
	blocks  blocks
	company company
	inline  Dispatcher[N] // see Inline

	wake      chan struct{}
	turn      sync.Mutex   // of whoever writes
	written   atomic.Int64 // in files
	synced    atomic.Int64 // durable
	done      atomic.Int64 // dispatched
	gathering gathering
	settled   taken[N] // of Settle, in its turn
	dirtyTo   int64    // the writer's: a failed write may have left bytes up to here
	allocated int64    // the writer's: up to where room was asked for

	out struct {
		sync.Mutex
		batches []*Batch[N]
		free    []*Batch[N]
		wake    chan struct{}
	}
}

// Open lists the files of the log; Scan, Cut and Start make it ready.
func Open[N any](o Options) (*Log[N], error) {
	set, err := segment.OpenSet(o.Pool, o.Dir, o.Size)
	if err != nil {
		return nil, err
	}
	l := &Log[N]{opt: o, set: set, wake: make(chan struct{}, 1)}
	l.out.wake = make(chan struct{}, 1)
	l.ring.chunkSize = o.Chunk
	l.blocks.size = blockSize(o.Size)
	l.company.alone.Store(16 * quiteAlone)
	l.mu.pending = &Batch[N]{}
	return l, nil
}

// Start sets the log's end, behind which everything is zero and before which everything
// is dispatched, where what is known to be durable ends, and the store time of the last
// record.
func (l *Log[N]) Start(end, durable, lastTime int64) {
	l.mu.end, l.mu.lastTime = end, lastTime
	l.written.Store(end)
	l.synced.Store(durable)
	l.done.Store(end)
	l.ring.start = end
}

// Min is the first offset of the log.
func (l *Log[N]) Min() int64 {
	if files := l.set.Files(); len(files) > 0 {
		return files[0].Base
	}
	return 0
}

// Written is the end of what is in files.
func (l *Log[N]) Written() int64 { return l.written.Load() }

// Synced is the end of what is durable.
func (l *Log[N]) Synced() int64 { return l.synced.Load() }

// Done is the end of what was dispatched.
func (l *Log[N]) Done() int64 { return l.done.Load() }

// End is the offset of the next append.
func (l *Log[N]) End() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.end
}

// Err is why the log has failed for good, nil when it has not.
func (l *Log[N]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.failed == ErrClosed {
		return nil
	}
	return l.mu.failed
}

// Refusal is why appends are refused now, nil when they are not.
func (l *Log[N]) Refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusalLocked()
}

func (l *Log[N]) refusalLocked() error {
	if l.mu.failed != nil {
		return l.mu.failed
	}
	if l.mu.why != nil && !time.Now().Before(l.mu.refuse) {
		l.mu.why = nil
	}
	return l.mu.why
}

// Files is the set of files.
func (l *Log[N]) Files() *segment.Set { return l.set }

// Put is one append: one record, or several of one queue side by side.
type Put[N any] struct {
	Records []byte  // encoded, one behind the other
	Sizes   []int32 // of the records; nil for one
	Next    *int64  // the queue's next offset; nil: the record keeps offset 0
	// Beside are further queues that one record gets into. Their offsets stand in the record
	// itself, so the append is refused with ErrMoved where they are not as they were seen.
	Beside  *[]Counter
	QueueID int32
	Notes   []N  // one for each record; nil for one record
	Note    N    // of one record
	Held    bool // by a round of the caller's own, which ends with Settle
	Done    func(Placed, error)
}

// Append places p at the end. Done is called by the writer, in log order, with the place
// of the first record, unless Append returns an error, and then never.
func (l *Log[N]) Append(p *Put[N]) error {
	size := int64(len(p.Records))
	if size+message.BlankSize > l.opt.Size {
		return ErrTooBig
	}
	now := l.opt.Now()
	l.mu.Lock()
	if err := l.admitLocked(size, p.Held); err != nil {
		l.mu.Unlock()
		return err
	}
	if p.Beside != nil && !countLocked(*p.Beside) {
		l.mu.Unlock()
		return ErrMoved
	}
	if now < l.mu.lastTime {
		now = l.mu.lastTime
	}
	l.mu.lastTime = now
	dst := l.reserveLocked(int(size))
	copy(dst, p.Records)
	if p.Sizes == nil {
		l.placeLocked(dst, p.Next, p.QueueID, now, &p.Note, p.Done)
		if p.Beside != nil {
			l.mu.pending.Entries[len(l.mu.pending.Entries)-1].beside = p.Beside
		}
	} else {
		done := p.Done
		for i, n := range p.Sizes {
			l.placeLocked(dst[:n], p.Next, p.QueueID, now, &p.Notes[i], done)
			dst, done = dst[n:], nil
		}
	}
	wake := l.mu.asleep && len(l.mu.pending.Entries) >= l.mu.want && !(p.Held && l.holds())
	if wake {
		l.mu.asleep = false
	}
	l.mu.Unlock()
	if wake {
		l.rouse()
	}
	return nil
}

// countLocked counts up all the counters, or none of them where one has moved.
func countLocked(counters []Counter) bool {
	for _, c := range counters {
		if *c.Next != c.Seen {
			return false
		}
	}
	for _, c := range counters {
		*c.Next++
	}
	return true
}

// Guard runs f while no offset is given out. f must not wait.
func (l *Log[N]) Guard(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// See notes where the counters are now.
func (l *Log[N]) See(counters []Counter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range counters {
		counters[i].Seen = *counters[i].Next
	}
}

func (l *Log[N]) placeLocked(dst []byte, next *int64, queueID int32, now int64, note *N, done func(Placed, error)) {
	pending := l.mu.pending
	pending.Entries = append(pending.Entries, Entry[N]{
		Placed: Placed{PhysicalOffset: l.mu.end, StoreTimestamp: now, QueueID: queueID, Size: int32(len(dst))},
		Note:   *note, next: next, done: done,
	})
	e := &pending.Entries[len(pending.Entries)-1]
	if next != nil {
		e.QueueOffset = *next
		*next++
	}
	message.Patch(dst, e.QueueOffset, e.PhysicalOffset, now)
	l.mu.end += int64(len(dst))
}

// admitLocked waits for room for size bytes. It gives mu up while it waits; held says that
// the caller is in a round.
func (l *Log[N]) admitLocked(size int64, held bool) error {
	var deadline *time.Timer
	for {
		if err := l.refusalLocked(); err != nil {
			return err
		}
		open := l.mu.end - min(l.done.Load(), l.written.Load())
		if open == 0 || open+size <= l.opt.MaxOpen {
			return nil
		}
		if deadline == nil {
			deadline = time.NewTimer(l.opt.Busy)
			defer deadline.Stop()
		}
		if l.mu.room == nil {
			l.mu.room = make(chan struct{})
		}
		room := l.mu.room
		wake := l.wakeLocked()
		l.mu.Unlock()
		if wake {
			l.rouse()
		}
		late := l.await(room, deadline.C, held)
		l.mu.Lock()
		if late {
			return ErrBusy
		}
	}
}

// await waits for room and reports whether it is too late for it.
func (l *Log[N]) await(room <-chan struct{}, deadline <-chan time.Time, held bool) (late bool) {
	if held {
		l.opt.Rounds.Pause()
		defer l.opt.Rounds.Resume()
	}
	select {
	case <-room:
		return false
	case <-deadline:
		return true
	}
}

// wakeLocked reports whether the caller must wake the writer for what is pending.
func (l *Log[N]) wakeLocked() bool {
	wake := l.mu.asleep && len(l.mu.pending.Entries) > 0
	if wake {
		l.mu.asleep = false
	}
	return wake
}

// reserveLocked gives the place for a record of size bytes, in a new file when it and an
// end-of-file record do not fit into this one.
func (l *Log[N]) reserveLocked(size int) []byte {
	left := l.opt.Size - l.mu.end%l.opt.Size
	if int64(size)+message.BlankSize > left {
		if left < l.opt.Size {
			c := l.chunkLocked(message.BlankSize)
			message.AppendBlank(c.buf[c.n:c.n], int32(left))
			c.n += message.BlankSize
		}
		l.mu.end += left
		l.mu.chunk = nil
	} else if left == l.opt.Size {
		l.mu.chunk = nil
	}
	c := l.chunkLocked(size)
	dst := c.buf[c.n : c.n+size]
	c.n += size
	return dst
}

func (l *Log[N]) chunkLocked(size int) *chunk {
	if c := l.mu.chunk; c != nil && len(c.buf)-c.n >= size {
		return c
	}
	c := l.ring.add(l.mu.end, size)
	l.mu.chunk = c
	l.mu.fresh = append(l.mu.fresh, c)
	return c
}

// Dispatcher deals with batches on the goroutine that has written them.
type Dispatcher[N any] interface {
	// Begin reports at once whether a batch may be dealt with now, before all that comes later.
	Begin(*Batch[N]) bool
	// Dispatch deals with a batch that was begun as Next's caller would, Dispatched included. It
	// must not wait for an append.
	Dispatch(*Batch[N])
}

// Inline lets who writes offer batches to d instead of handing them to Next: small ones, when
// nothing else is pending, so that a lone record costs no change of goroutines, and all those of
// SettleAll. It must be called before Run.
func (l *Log[N]) Inline(d Dispatcher[N]) { l.inline = d }

// Next waits for the next batch that is complete, in log order. Dispatched says when it
// has been dealt with.
func (l *Log[N]) Next(ctx context.Context) (*Batch[N], error) {
	for {
		if b := l.TryNext(); b != nil {
			return b, nil
		}
		select {
		case <-l.out.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryNext is the next complete batch, nil if there is none now.
func (l *Log[N]) TryNext() *Batch[N] {
	o := &l.out
	o.Lock()
	defer o.Unlock()
	if len(o.batches) == 0 {
		return nil
	}
	b := o.batches[0]
	n := copy(o.batches, o.batches[1:])
	o.batches[n] = nil
	o.batches = o.batches[:n]
	return b
}

// recycle lets go of a batch; the second to do so makes it free.
func (l *Log[N]) recycle(b *Batch[N]) {
	if b.users.Add(-1) != 0 {
		return
	}
	if cap(b.Entries) > maxFreeEntries {
		return
	}
	clear(b.Entries)
	b.Entries = b.Entries[:0]
	l.out.Lock()
	if len(l.out.free) < 4 {
		l.out.free = append(l.out.free, b)
	}
	l.out.Unlock()
}

// maxFreeEntries is how large a batch may have grown and still be used again.
const maxFreeEntries = 1 << 14

func (l *Log[N]) freeBatch() *Batch[N] {
	l.out.Lock()
	defer l.out.Unlock()
	n := len(l.out.free)
	if n == 0 {
		return &Batch[N]{}
	}
	b := l.out.free[n-1]
	l.out.free[n-1] = nil
	l.out.free = l.out.free[:n-1]
	return b
}

// Dispatched says that readers see everything of the batch and before it.
func (l *Log[N]) Dispatched(b *Batch[N]) {
	end := b.End()
	l.recycle(b)
	l.done.Store(end)
	l.ring.trim(end - l.opt.Keep)
	l.makeRoom()
}

func (l *Log[N]) makeRoom() {
	l.mu.Lock()
	room := l.mu.room
	l.mu.room = nil
	l.mu.Unlock()
	if room != nil {
		close(room)
	}
}
