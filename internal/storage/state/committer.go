package state

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Commit makes b take effect and returns when it is as durable as the policy asks, or ErrFull
// at once while the disk is full. It must not be called from a done function.
func (d *DB) Commit(b *Batch) error {
	answered := make(chan error, 1)
	d.CommitAsync(b, func(err error) { answered <- err })
	d.Announce()
	return <-answered
}

// Announce wakes the committer for what was submitted, a round being open or not: it is for
// who waits for the outcome.
func (d *DB) Announce() { d.poke() }

// Quiesce ends waiting for room on a full disk, which a reader of requests may be in: the
// step of a stop before the connections are drained.
func (d *DB) Quiesce() { d.room.giveUp() }

// CommitAsync queues b behind everything that was submitted before. done (nil for none) is
// called with the outcome from the committer; it must not block, and may submit again.
func (d *DB) CommitAsync(b *Batch, done func(error)) {
	d.submit(submission{batch: b, done: done})
}

// CommitSource queues s, unless it is queued already: the committer will call its Collect
// once after this call, behind everything submitted before it.
func (d *DB) CommitSource(s Source) {
	d.mu.Lock()
	if _, queued := d.mu.sources[s]; queued {
		d.mu.Unlock()
		return
	}
	d.mu.sources[s] = struct{}{}
	d.mu.Unlock()
	d.submit(submission{source: s})
}

// CommitSourceWithin is CommitSource with time to wait for company: s is collected with
// the loop's next commit, or after delay if there is none. Before the committer loop runs it is
// collected at once. When the database has failed it does nothing: a source that waits for
// something would be asked again and again, for nothing.
func (d *DB) CommitSourceWithin(s Source, delay time.Duration) {
	if d.failed.Load() != nil {
		return
	}
	d.mu.Lock()
	if _, queued := d.mu.sources[s]; queued {
		d.mu.Unlock()
		return
	}
	if !d.mu.running {
		d.mu.Unlock()
		d.CommitSource(s)
		return
	}
	due := time.Now().Add(delay)
	at, waits := d.mu.lazy[s]
	sooner := !waits || due.Before(at)
	if sooner {
		for _, other := range d.mu.lazy {
			sooner = sooner && due.Before(other)
		}
		d.mu.lazy[s] = due
	}
	d.mu.Unlock()
	if sooner { // the loop sleeps for longer
		d.poke()
	}
}

// takeLocked appends sources that wait to a round that commits anyway.
func takeLocked[V any](d *DB, round []submission, waiting map[Source]V) []submission {
	for s := range waiting {
		if _, queued := d.mu.sources[s]; !queued {
			d.mu.sources[s] = struct{}{}
			round = append(round, submission{source: s})
		}
	}
	clear(waiting)
	return round
}

// nextLook is how long the loop may sleep for the sake of lazy sources and of a full disk;
// negative means for ever.
func (d *DB) nextLook() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := time.Duration(-1)
	if d.room.full.Load() || len(d.mu.held) > 0 {
		wait = roomPause
	}
	for _, due := range d.mu.lazy {
		if left := max(time.Until(due), 0); wait < 0 || left < wait {
			wait = left
		}
	}
	return wait
}

func (d *DB) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *DB) submit(s submission) {
	d.mu.Lock()
	if d.mu.closed {
		delete(d.mu.sources, s.source)
		d.mu.Unlock()
		s.fail(ErrClosed)
		return
	}
	if d.room.stuck.Load() {
		d.mu.Unlock()
		d.refuse(s)
		return
	}
	d.mu.queue = append(d.mu.queue, s)
	inline := !d.mu.running && !d.mu.busy
	first := len(d.mu.queue) == 1
	held := !d.opts.Sync && d.opts.Rounds.Open()
	_, bulk := s.source.(Bulk)
	d.mu.bulk = d.mu.bulk || bulk
	d.mu.Unlock()
	if inline {
		d.drain()
	} else if first && !held || bulk {
		d.poke()
	}
}

// maxSettled is how many submissions Settle commits itself.
const maxSettled = 4

// Settle commits what a round that has ended may have held back: on the caller's goroutine
// when it is little.
func (d *DB) Settle() {
	d.mu.Lock()
	n, busy, bulk := len(d.mu.queue), d.mu.busy, d.mu.bulk
	d.mu.Unlock()
	switch {
	case n == 0 || busy: // who is busy looks again
	case n > maxSettled || bulk || d.opts.Sync || d.room.full.Load():
		d.poke()
	default:
		d.drainOnce()
	}
}

// drainOnce commits what is queued now and is little, unless somebody else commits.
func (d *DB) drainOnce() {
	d.mu.Lock()
	if d.mu.busy || d.mu.bulk || len(d.mu.queue) == 0 {
		d.mu.Unlock()
		return
	}
	round := d.takeRoundLocked()
	d.mu.Unlock()
	defer d.drained(round)
	d.commit(round)
}

// drained ends drainOnce.
func (d *DB) drained(round []submission) {
	clear(round)
	d.mu.Lock()
	d.mu.busy = false
	d.mu.spare = round[:0]
	more, running := len(d.mu.queue) > 0, d.mu.running
	d.mu.Unlock()
	if more && running {
		d.poke()
	} else if more {
		d.drain()
	}
}

// takeRoundLocked takes what is queued, for the caller to commit.
func (d *DB) takeRoundLocked() []submission {
	d.mu.busy = true
	round := d.mu.queue
	d.mu.queue, d.mu.spare = d.mu.spare[:0], nil
	d.mu.bulk = false
	clear(d.mu.sources)
	return round
}

// Run is the committer loop: it takes all that waits, merges it into one Pebble commit,
// answers, and looks again.
func (d *DB) Run(ctx context.Context) error {
	d.mu.Lock()
	d.mu.running = true
	d.mu.Unlock()
	d.room.open.Store(true)
	defer d.room.giveUp()
	defer context.AfterFunc(ctx, d.room.giveUp)()
	d.drain()
	lazy := time.NewTimer(time.Hour)
	defer lazy.Stop()
	for {
		failed := d.failed.Load()
		if failed == nil {
			var due <-chan time.Time
			if wait := d.nextLook(); wait >= 0 {
				lazy.Reset(wait)
				due = lazy.C
			}
			select {
			case <-d.wake:
				d.drain()
				continue
			case <-due:
				full := d.room.refuses()
				d.mu.Lock()
				if !full {
					d.mu.queue = takeLocked(d, d.mu.queue, d.mu.held)
				}
				d.mu.queue = takeLocked(d, d.mu.queue, d.mu.lazy)
				d.mu.bulk = true // for this loop
				d.mu.Unlock()
				d.drain()
				continue
			case <-ctx.Done():
			}
		}
		d.room.giveUp()
		d.mu.Lock()
		d.mu.running = false
		d.mu.queue = takeLocked(d, d.mu.queue, d.mu.held)
		d.mu.queue = takeLocked(d, d.mu.queue, d.mu.lazy)
		d.mu.Unlock()
		d.drain()
		if failed != nil {
			return *failed
		}
		return ctx.Err()
	}
}

// drain commits until the queue is empty, unless somebody else does so already. That
// somebody sees what was queued before drain looked, because busy is cleared under the
// same lock that finds the queue empty.
func (d *DB) drain() {
	for {
		d.mu.Lock()
		if d.mu.busy || len(d.mu.queue) == 0 {
			d.mu.Unlock()
			return
		}
		d.mu.queue = takeLocked(d, d.mu.queue, d.mu.lazy)
		round := d.takeRoundLocked()
		d.mu.Unlock()

		d.commit(round)

		clear(round)
		d.mu.Lock()
		d.mu.busy = false
		d.mu.spare = round[:0]
		d.mu.Unlock()
	}
}

// commit merges one round into one Pebble batch and answers each submission in order.
func (d *DB) commit(round []submission) {
	if d.room.refuses() {
		for _, s := range round {
			d.refuse(s)
		}
		return
	}
	var merged *Batch
	for i := range round {
		s := &round[i]
		switch {
		case s.source != nil:
			if merged == nil {
				merged = d.NewBatch()
			}
			s.done = s.source.Collect(merged)
		case merged == nil:
			merged = s.batch
		case s.batch != nil:
			_ = merged.pb.Apply(s.batch.pb, nil)
			merged.afterLog = merged.afterLog || s.batch.afterLog
			s.batch.Discard()
		}
	}
	var err error
	if merged != nil {
		if !merged.Empty() {
			err = d.apply(merged)
		}
		merged.Discard()
	}
	for i := range round {
		if done := round[i].done; done != nil {
			done(err)
		}
	}
}

// apply commits to Pebble. When its log can't be written nothing more is committed from then on,
// every submission is answered with the failure, and Run returns it; so it is when Pebble calls
// Fatalf, which panics here.
func (d *DB) apply(b *Batch) (err error) {
	if failed := d.failed.Load(); failed != nil {
		return *failed
	}
	defer func() {
		if err != nil {
			err = d.fail(fmt.Errorf("commit state: %w", err))
		}
	}()
	if b.afterLog && !d.opts.Sync {
		if err := d.wal.beforeSync(); err != nil {
			return err
		}
	}
	defer recovered(&err)
	d.applying.Store(true)
	defer d.applying.Store(false)
	if err := d.p.Apply(b.pb, pebble.Sync); err != nil {
		return err
	}
	return d.wal.failure()
}

// fail ends the database; the first failure counts.
func (d *DB) fail(why error) error {
	if d.failed.CompareAndSwap(nil, &why) {
		close(d.ended)
	}
	d.poke()
	return *d.failed.Load()
}

// refuse answers one submission while the disk is full.
func (d *DB) refuse(s submission) {
	if s.source == nil {
		s.fail(ErrFull)
		return
	}
	d.mu.Lock()
	delete(d.mu.sources, s.source)
	d.mu.held[s.source] = struct{}{}
	d.mu.Unlock()
	d.poke() // the loop has to look for room
	if r, ok := s.source.(Refuser); ok {
		r.Refuse(ErrFull)
	}
}

// refuseQueued answers what waits behind a commit that waits for room.
func (d *DB) refuseQueued() {
	d.mu.Lock()
	queue := d.mu.queue
	d.mu.queue = nil
	d.mu.Unlock()
	for _, s := range queue {
		d.refuse(s)
	}
}

func (s submission) fail(err error) {
	if s.batch != nil {
		s.batch.Discard()
	}
	if s.done != nil {
		s.done(err)
	}
}

// RunSync is the loop of the real syncs under asynchronous flush. It sleeps while nothing
// was written, and lets one interval pass between two syncs.
func (d *DB) RunSync(ctx context.Context) error {
	pause := time.NewTimer(0)
	if !pause.Stop() {
		<-pause.C
	}
	for {
		select {
		case <-d.wal.dirtied:
		case <-ctx.Done():
			return ctx.Err()
		}
		pause.Reset(d.opts.SyncInterval)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := d.Sync(); err != nil {
			return err
		}
	}
}
