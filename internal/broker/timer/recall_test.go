package timer

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// bareWheel is a wheel over an empty database, without a store and without its loop.
func bareWheel(t *testing.T) *Wheel {
	t.Helper()
	db, err := state.Open(state.Options{FS: vfs.NewMem(), Dir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w, err := OpenWheel(WheelOptions{State: db, Topic: func(name string) (*topic.Config, bool) { return topic.New(name), true }, Clock: clock.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.alarm.Stop)
	return w
}

// A recall whose record can't be written answers all who have joined it, up to the last one:
// who comes later has a claim of its own.
func TestFailedRecallAnswersAll(t *testing.T) {
	w := bareWheel(t)
	due := w.o.Clock.NowMilli() + 3_600_000
	w.Arrived(&storage.Dispatched{Due: due, RealTopic: "T"})
	p, h, failed := place{due, 0}, message.RecallHandle{Topic: "T", Due: due}, errors.New("no room")
	var asked, answered atomic.Int64
	recall := func() {
		asked.Add(1)
		switch claimed, err := w.claimRecall(p, h, func(error) { answered.Add(1) }); {
		case err != nil:
			t.Error(err)
		case claimed:
			w.recalled(p, failed)
		}
	}
	const each = 50_000
	second := make(chan struct{})
	go func() {
		defer close(second)
		for range each {
			recall()
		}
	}()
	for range each {
		recall()
	}
	<-second
	if asked.Load() != answered.Load() || len(w.mu.claims) != 0 {
		t.Errorf("%d of %d recalls were answered, %d claims are left", answered.Load(), asked.Load(), len(w.mu.claims))
	}
}

// late is a store whose dispatcher has indexed a key and not yet told the wheel.
type late struct {
	WheelStore
	tell func()
}

func (l late) CatchUp() { l.tell() }

// A message that was found by its key before the wheel knows of it is not too late to recall.
func TestRecallOfWhatIsOnlyIndexed(t *testing.T) {
	w := bareWheel(t)
	due := w.o.Clock.NowMilli() + 3_600_000
	p, h := place{due, 0}, message.RecallHandle{Topic: "T", Due: due}
	w.o.Store = late{tell: func() {}}
	if claimed, err := w.claimFound(p, h, func(error) {}); claimed || !errors.Is(err, ErrRecallLate) {
		t.Errorf("what is not there is claimed: %v", err)
	}
	w.o.Store = late{tell: func() { w.Arrived(&storage.Dispatched{Due: due, RealTopic: "T"}) }}
	if claimed, err := w.claimFound(p, h, func(error) {}); !claimed {
		t.Errorf("what the wheel is told of just now is not claimed: %v", err)
	}
}
