package timer

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// indexOnly opens a wheel that has no log, of which recovery is over. Topics that gone names
// are not there.
func indexOnly(t *testing.T, gone map[string]bool, events WheelEvents) *Wheel {
	t.Helper()
	db, err := state.Open(state.Options{FS: vfs.NewMem(), Dir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	find := func(name string) (*topic.Config, bool) { return topic.New(name), !gone[name] }
	w, err := OpenWheel(WheelOptions{State: db, Topic: find, Clock: clock.New(), Events: events})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.alarm.Stop)
	w.mu.replay = false
	return w
}

// arrive adds a message that is due at a time.
func (w *Wheel) arrive(name string, due int64) {
	w.Arrived(&storage.Dispatched{Due: due, QueueOffset: w.mu.next, Size: 100, RealTopic: name})
}

// store has the database know all.
func (w *Wheel) store(t *testing.T) {
	t.Helper()
	w.Settle()
	if err := w.o.State.Commit(w.o.State.NewBatch()); err != nil {
		t.Fatal(err)
	}
}

// What has left when its topic goes was not dropped, whether the database knows that yet or
// not, and what arrives for a topic that is gone was.
func TestOnlyWhatWaitsIsDropped(t *testing.T) {
	gone, dropped := make(map[string]bool), make(map[string]int)
	w := indexOnly(t, gone, WheelEvents{Dropped: func(name string) { dropped[name]++ }})
	due := w.o.Clock.WallMilli() + 3_600_000
	for range 3 {
		w.arrive("T", due)
	}
	w.store(t)
	for range 3 {
		w.arrive("T", due)
	}
	w.end(place{due, 0}) // delivered: one that the database has, and one that it has not
	w.end(place{due, 3})
	gone["T"] = true
	w.Gone("T")
	if err := w.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dropped["T"] != 4 || len(w.Counts()) != 0 {
		t.Errorf("dropped %v of four, %v wait", dropped, w.Counts())
	}
	if f := w.mu.delivered["T"]; f != 6 {
		t.Errorf("%d of six have left", f)
	}
	w.arrive("T", due)
	if dropped["T"] != 5 {
		t.Errorf("dropped %v: the one that came after its topic had gone was not", dropped)
	}
}

// Sweeping looks at what else is to be done however few of all that waits it is for.
func TestSweepingStopsOnItsWay(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	due := w.o.Clock.WallMilli() + 3_600_000
	for i := range 2*sweepAtOnce + 1 {
		w.arrive("other", due+int64(i))
	}
	w.store(t)
	looks := 0
	for from := keyOfEntries; from != nil; looks++ {
		list, next, err := w.homelessThere(map[string]struct{}{"T": {}}, from)
		if err != nil || len(list) > 0 {
			t.Fatalf("%d found, %v", len(list), err)
		}
		from = next
	}
	if looks != 3 {
		t.Errorf("went through the index in %d steps", looks)
	}
}

// What is being delivered, or is tried again, has not left.
func TestCheckpointIsBeforeAllThatWaits(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	now := w.o.Clock.WallMilli()
	due := now - 10_000
	w.arrive("T", due)
	expect := func(when string, want int64) {
		t.Helper()
		if got := int64(binary.BigEndian.Uint64(w.Checkpoint())); got != want/grain*grain {
			t.Errorf("%s: all before %d has left, want %d", when, got, want/grain*grain)
		}
	}
	list, _, err := w.take(now, now)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d taken, %v", len(list), err)
	}
	expect("on its way", due)
	w.retry(list)
	expect("to be tried again", due)
}
