package timer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// endOfLog is a store of which only the end is asked.
type endOfLog struct {
	WheelStore
	end, synced atomic.Int64
}

func (l *endOfLog) LogEnd() int64    { return l.end.Load() }
func (l *endOfLog) LogSynced() int64 { return l.synced.Load() }

// What the index says is not even written before the log is durable as far as that: of what
// was written and not synced, a power cut may leave the one and not the other. No sync is
// made for it, but when all has to be stored.
func TestIndexFollowsTheLogsSyncs(t *testing.T) {
	syncs := atomic.Int64{}
	db, err := state.Open(state.Options{FS: vfs.NewMem(), Dir: "state", SyncInterval: time.Hour, BeforeSync: func() error { syncs.Add(1); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = db.Run(ctx) }()
	defer func() { cancel(); <-ended; db.Close() }()
	log := new(endOfLog)
	w, err := OpenWheel(WheelOptions{Store: log, State: db, Topic: func(name string) (*topic.Config, bool) { return topic.New(name), true }, Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.alarm.Stop()
	w.mu.eager, w.mu.replay = false, false
	before := syncs.Load()
	p := place{w.o.Clock.WallMilli() + 1000, 0}
	until := func(what string, ok func() bool) {
		t.Helper()
		for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("waited in vain for %s", what)
			}
		}
	}
	known := func() bool {
		_, ok, err := db.Get(state.Wheel, keyOfEntry(p))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	gathered := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.mu.sent.puts != nil
	}
	step := func(end int64, change func(), was bool) {
		t.Helper()
		log.end.Store(end)
		w.mu.Lock()
		w.mu.storedAt = time.Time{} // a second has passed
		w.mu.Unlock()
		change()
		until("the change to be put together", gathered)
		log.synced.Store(end - 1)
		if err := db.Commit(db.NewBatch()); err != nil {
			t.Fatal(err)
		}
		w.changed(true)
		if err := db.Commit(db.NewBatch()); err != nil {
			t.Fatal(err)
		}
		if known() != was {
			t.Fatalf("before the log is synced: known %v, want %v", !was, was)
		}
		log.synced.Store(end)
		until("the change to be stored", func() bool { return known() != was })
		until("that to be known", func() bool { return !gathered() })
	}
	step(100, func() { w.Arrived(&storage.Dispatched{Due: p.due, RealTopic: "T"}) }, false)
	step(200, func() { w.end(p) }, true)
	if n := syncs.Load() - before; n != 0 {
		t.Errorf("%d syncs of the log for the index", n)
	}
	w.Arrived(&storage.Dispatched{Due: p.due, RealTopic: "T"})
	log.end.Store(300)
	w.Settle()
	if err := db.Commit(db.NewBatch()); err != nil {
		t.Fatal(err)
	}
	if n := syncs.Load() - before; n != 1 || !known() {
		t.Errorf("when all has to be stored: %d syncs of the log, known %v", n, known())
	}
}

// What is written and not yet reported as stored is counted by due time like everything else: a
// message once, one that has ended not at all.
func TestCountedWhileStored(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	now := w.o.Clock.WallMilli()
	first := place{now + 1000, 0}
	for range 3 {
		w.arrive("T", first.due)
	}
	w.store(t)
	for _, k := range []struct {
		sent changes
		want int64
	}{
		{changes{}, 3},
		{changes{puts: map[place]entry{first: {place: first, topic: "T"}}}, 3},
		{changes{dels: map[place]struct{}{first: {}}}, 2},
	} {
		w.mu.sent.changes = k.sent
		if within, err := w.within(now); err != nil || within[0].Messages != k.want {
			t.Errorf("%v: %d are due soon, want %d, %v", k.sent, within[0].Messages, k.want, err)
		}
	}
	w.mu.sent = storing{}
}
