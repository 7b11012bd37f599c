// Package storage is the store: append, read, offsets, dispatch, retention and check of
// log, queues and key index. DESIGN.md tells how they go together.
//
// Invariants: readers see a message only after it was dispatched; done is called once
// for every append, in log order; recovery cuts what is torn and rebuilds what is
// behind. Neighbours: publish appends, pull and pop read, broker opens it.
package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/storage/keyindex"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Engine is one open store.
//
// Five loops work on it, each owner of its part: the log's writer; the dispatcher, which
// adds to queues and index, as the writer does for it when a few records come alone; the flusher, which syncs and writes checkpoints;
// the retention, the only one to delete log files; the queries by key that take long.
type Engine struct {
	opt    Options
	pool   *segment.Pool
	log    *commitlog.Log[note]
	queues *consumequeue.Store
	index  *keyindex.Index
	traits traits
	tags   tagNames
	mends  mends

	searches searches

	full   atomic.Bool // over the full watermark
	broken atomic.Bool // queues or index can't be trusted to be complete: no more checkpoints

	dirty chan struct{} // something was dispatched; wakes the flusher

	dispatching sync.Mutex  // the dispatcher, and whoever waits for a moment without it
	moved       *sync.Cond  // of dispatching: a batch is dispatched, or the dispatcher has ended
	inline      atomic.Bool // the dispatcher runs, and the log's writer may dispatch small batches
	out         []Dispatched

	saving sync.Mutex // one checkpoint at a time, and no topic deletion beside it
	saved  struct {   // guarded by saving
		indexFiles []keyindex.FileInfo
		queues     []queueEnd
		snapshotAt time.Time
	}
	lastTime     atomic.Int64 // store time of the last dispatched record
	begun        int64        // where the log ended when it was opened
	begunAt      int64        // what no stamp from there on is before
	retaining    sync.Mutex   // one deletion of log files at a time
	checkpointed atomic.Int64 // dispatched of the last checkpoint
	warned       struct{ freeUnknown atomic.Bool }
	closed       bool
}

// Loop is a part of the store that the owner runs until it stops the store.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

// Open recovers the store in o.Dir, or makes an empty one, and returns when everything
// in the log has been dispatched.
func Open(o Options) (*Engine, error) {
	o.fill()
	e := &Engine{opt: o, pool: segment.NewPool(o.FS, o.MaxOpenFiles), dirty: make(chan struct{}, 1)}
	e.moved = sync.NewCond(&e.dispatching)
	e.searches.wake = make(chan struct{}, 1)
	log, err := commitlog.Open[note](commitlog.Options{
		Pool: e.pool, Dir: e.path("commitlog"), Size: o.LogSegmentSize, Sync: o.Flush == Sync,
		MaxOpen: o.MaxOpenBytes, Keep: min(keepInMemory, o.MaxOpenBytes), Chunk: int(min(chunkSize, o.LogSegmentSize)),
		Busy: o.BusyAfter, Now: o.Clock.NowMilli, Rounds: o.Rounds, Log: o.Log, Written: o.Events.Written, Synced: o.Events.Synced,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	e.log = log
	log.Inline(inline{e})
	e.queues = consumequeue.Open(consumequeue.Options{Pool: e.pool, Dir: e.path("consumequeue"), FileEntries: o.QueueFileEntries, Lights: o.Lights})
	e.index = keyindex.Open(keyindex.Options{Pool: e.pool, Dir: e.path("index"), Slots: o.IndexSlots, Entries: o.IndexEntries, SyncLog: e.Sync})
	if err := e.recover(); err != nil {
		e.closeFiles()
		return nil, fmt.Errorf("recovering the store in %s: %w", o.Dir, err)
	}
	return e, nil
}

func (e *Engine) path(elem ...string) string {
	return e.opt.FS.PathJoin(append([]string{e.opt.Dir}, elem...)...)
}

// Loops are to be started in this order and stopped in the reverse order, then Close.
func (e *Engine) Loops() []Loop {
	return []Loop{
		{"log writer", e.write},
		{"dispatcher", e.dispatch},
		{"flusher", e.flush},
		{"retention", e.retain},
		{"key queries", e.search},
	}
}

// Close dispatches and flushes everything and marks a clean stop. The loops must have
// ended. When the log has failed, the stop is not a clean one and the next Open recovers.
func (e *Engine) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	for b := e.log.TryNext(); b != nil; b = e.log.TryNext() {
		e.dispatchBatch(b)
	}
	err := e.log.Err()
	if full := e.opt.Full(); err == nil && full != nil {
		// It would take the room that the next start needs.
		e.opt.Log.Warn("queues and index are not written; the next start has them from the log", "why", full)
		err = e.Sync()
	} else if err == nil {
		err = e.saveAll()
	}
	e.closeFiles()
	return err
}

// saveAll leaves everything as the next start wants to find it.
func (e *Engine) saveAll() error {
	if err := e.save(true); err != nil {
		return err
	}
	if e.opt.ExportLights() {
		if err := e.queues.ExportLights(); err != nil {
			e.opt.Log.Error("the queues of lite topics could not be written for another server", "err", err)
		}
	}
	if e.broken.Load() {
		return nil
	}
	return e.unmarkRunning()
}

func (e *Engine) closeFiles() {
	e.log.Files().Close()
	e.queues.Close()
	e.index.Close()
}

// LogMin is the first log offset that is still there.
func (e *Engine) LogMin() int64 { return e.log.Min() }

// LogMax is the end of the log as far as it is dispatched.
func (e *Engine) LogMax() int64 { return e.log.Done() }

// LogSynced is the end of the log as far as it is durable.
func (e *Engine) LogSynced() int64 { return e.log.Synced() }

// LogEnd is where the next append goes.
func (e *Engine) LogEnd() int64 { return e.log.End() }

// QueueName names a queue that exists.
type QueueName struct {
	Topic   string
	QueueID int32
}

// Queues names the queues that have or had records, sorted.
func (e *Engine) Queues() []QueueName {
	var names []QueueName
	e.queues.Each(func(q *consumequeue.Queue) {
		if q.Max() > 0 {
			names = append(names, QueueName{q.Topic.Name, q.ID})
		}
	})
	return names
}

// Topics names the topics that have queues, sorted.
func (e *Engine) Topics() []string {
	var names []string
	for _, t := range e.queues.Topics() {
		names = append(names, t.Name)
	}
	return names
}

// DeleteTopic removes a topic's queues. Its records stay in the log until retention and
// are found by nobody. The caller sees to it that nothing is appended to the topic any
// more, and that Birth tells so before it calls.
func (e *Engine) DeleteTopic(topic string) error {
	e.saving.Lock()
	defer e.saving.Unlock()
	// What is appended is dispatched first, or it would bring the queue back.
	e.settle()
	if err := e.writeSnapshot(topic); err != nil {
		return fmt.Errorf("deleting topic %s: %w", topic, err)
	}
	if err := e.queues.Delete(topic); err != nil {
		return fmt.Errorf("deleting topic %s: %w", topic, err)
	}
	if err := e.queues.DeleteLights(names.LitePrefix(topic)); err != nil {
		return fmt.Errorf("deleting the lite topics of %s: %w", topic, err)
	}
	return nil
}

// Checkpointed is the log offset before which everything is durable in log, queues and
// index.
func (e *Engine) Checkpointed() int64 { return e.checkpointed.Load() }
