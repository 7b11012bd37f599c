package timer

import (
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// While the machine's clock is behind, the delays that are over are taken in windows, each once,
// wherever they are known; one that could not be delivered, or was being taken back, comes again.
func TestDelaysThatAreOver(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	now := w.o.Clock.NowMilli() + 1000
	delay := func(due int64) {
		w.Arrived(&storage.Dispatched{Due: due, QueueOffset: w.mu.next, Size: 100, RealTopic: "T", Relative: true})
	}
	for i := range int64(100) {
		delay(now - i)
		w.arrive("T", now-i) // a time, which the machine's clock has not reached
	}
	w.store(t)
	for i := range int64(50) {
		delay(now - i%10)
	}
	delay(now + 7000)
	w.o.Clock.Step(-time.Hour)
	_, wall := w.o.Clock.Read()
	taken := make(map[place]entry)
	take := func(want int) (next int64) {
		t.Helper()
		over, next, err := w.takeDelays(now, wall)
		if err != nil || len(over) != want {
			t.Fatalf("%d taken, want %d, %v", len(over), want, err)
		}
		for _, e := range over {
			if _, twice := taken[e.place]; twice || !e.relative || e.due > now || e.topic != "T" {
				t.Errorf("taken: %+v, twice: %v", e, twice)
			}
			taken[e.place] = e
		}
		return next
	}
	recalled := place{now, 0}
	if _, err := w.claimRecall(recalled, message.RecallHandle{}, func(error) {}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{windowLeast, windowLeast} {
		if next := take(want); next != now {
			t.Errorf("there is more, but it is looked for in %d ms", next-now)
		}
	}
	if next := take(150 - 1 - 2*windowLeast); next != now+7000 {
		t.Errorf("the next one is looked for in %d ms", next-now)
	}
	w.recalled(recalled, ErrRecallBusy)
	take(1)
	failed := place{now - 99, 198}
	e, ok := taken[failed]
	if !ok {
		t.Fatal("it was not taken")
	}
	delete(taken, failed)
	w.retry([]entry{e})
	if w.mu.retryAt == 0 || len(w.mu.later) != 0 {
		t.Errorf("tried again at %d; %d beside the window", w.mu.retryAt, len(w.mu.later))
	}
	if next := take(0); next != w.mu.retryAt {
		t.Errorf("the failed one is looked for in %d ms", next-now)
	}
	w.mu.retryAt = 0 // as when that has come
	take(1)
	for p := range taken {
		w.end(p)
	}
	delay(now) // by a dispatcher that was late
	take(1)
	if n := w.Counts()["T"]; n != 102 {
		t.Errorf("%d wait, want 102", n)
	}
}
