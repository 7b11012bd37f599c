package timer

import (
	"context"
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

// Any number of delays that end in one millisecond is taken with one look at each or two, and
// while nothing ends, nothing is looked at.
func TestDelaysOfOneMillisecond(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	now := w.o.Clock.NowMilli() + 1000
	const n = 20 * windowLeast
	for range n {
		w.Arrived(&storage.Dispatched{Due: now, QueueOffset: w.mu.next, Size: 100, RealTopic: "T", Relative: true})
	}
	w.store(t)
	_, wall := w.o.Clock.Read()
	reached, places := place{}, []place{}
	for took := 0; took < n; {
		over, next, err := w.takeDelays(now, wall)
		if err != nil || len(over) == 0 {
			t.Fatalf("%d of %d taken, %v", took, n, err)
		}
		for _, e := range over {
			if e.compare(reached) <= 0 {
				t.Fatalf("%v comes after %v", e.place, reached)
			}
			reached, places = e.place, append(places, e.place)
		}
		took += len(over)
		if at := (place{now, int64(took)}); took < n && (next != now || w.mu.delays.from != at) {
			t.Fatalf("after %d it goes on from %v at %d", took, w.mu.delays.from, next-now)
		}
	}
	for _, p := range places {
		w.end(p)
	}
	w.store(t)
	for _, k := range []struct {
		wall  int64
		looks bool
	}{{wall + 1, false}, {wall, true}, {wall + 1, false}} { // as time passes; set back; as time passes
		mark := place{now, 2 * n} // which a look moves
		w.mu.delays.from = mark
		over, next, err := w.takeDelays(now+1, k.wall)
		if looked := w.mu.delays.from != mark; err != nil || len(over) != 0 || next <= now+1 || looked != k.looks {
			t.Errorf("%+v: looked %v, %d taken, next in %d, %v", k, looked, len(over), next-now, err)
		}
	}
}

// The machine's clock is set back after deliverDelays had nothing to look for, and after a delay
// has ended: the loop looks again at once.
func TestSetBackBetweenTwoLooks(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	if err := w.alarm.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.deliverDelays(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mu.near = entries{{place: place{w.o.Clock.NowMilli() + 500, 0}, relative: true}} // as load has it
	w.o.Clock.Step(time.Second)
	w.o.Clock.Step(-time.Hour)
	w.nextLook()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.alarm.Wait(ctx); err != nil {
		t.Error("the loop sleeps until the machine's clock shows the end of a delay that is over")
	}
}
