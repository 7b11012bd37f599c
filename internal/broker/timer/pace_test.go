package timer

import (
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
)

func TestWindows(t *testing.T) {
	for late, want := range map[int64][2]int{-5: {64, 256}, 0: {64, 256}, 1500: {64, 256}, 1501: {128, 512}, 3000: {128, 512},
		3001: {256, 1024}, 4501: {256, 2048}, 6001: {256, 4096}, 1 << 40: {256, 4096}} {
		if n, bytes := windowOf(late); n != want[0] || bytes != want[1]<<10 {
			t.Errorf("%d ms late: %d at once, of %d bytes, want %v", late, n, bytes, want)
		}
	}
}

// What is taken at once is bounded in number and in bytes, of more than one message.
func TestTakeIsBounded(t *testing.T) {
	w := bareWheel(t)
	now := w.o.Clock.WallMilli()
	add := func(n int, size int32) {
		for range n {
			w.Arrived(&storage.Dispatched{Due: now - 10, QueueOffset: w.mu.next, Size: size, RealTopic: "T"})
		}
	}
	add(takeMost+6, 1000)
	add(3, takeBytes/2)
	add(2, 4*takeBytes)
	for i, want := range []struct {
		n    int
		full bool
	}{{takeMost, true}, {7, true}, {2, true}, {1, true}, {1, false}, {0, false}} {
		got, full, err := w.take(now, now)
		if err != nil || len(got) != want.n || full != want.full {
			t.Errorf("window %d: %d messages, full %v, %v; want %+v", i, len(got), full, err, want)
		}
	}
}

// Few messages are delivered each in its millisecond, a steady flow in rounds, and the more
// there are the shorter the rounds.
func TestRounds(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 0, roundLeast - 1: 0, roundLeast: longestRound, roundFull: longestRound, 2 * roundFull: longestRound / 2} {
		if got := roundOf(n); got != want {
			t.Errorf("%d messages: rounds %v apart, want %v", n, got, want)
		}
	}
	var h entries
	for due := range int64(1000) {
		h.push(entry{place: place{due: due * 7 % 1000}})
	}
	for end, want := range map[int64]int{0: 0, 1: 1, 100: 100, 600: 500} {
		if got := h.before(end, 500); got != want {
			t.Errorf("%d are due before %d, want %d", got, end, want)
		}
	}
}

// Only what goes on is a flow: neither a burst after a pause is one, nor a few messages, nor what
// has ended.
func TestFlow(t *testing.T) {
	at := time.Now()
	var f flow
	each := func(n int, pause time.Duration, times int) {
		for range times {
			at = at.Add(pause)
			f.add(n, at)
		}
	}
	want := func(steady bool, what string) {
		t.Helper()
		if f.steady != steady {
			t.Errorf("%s: steady is %v", what, !steady)
		}
	}
	each(1, 100*time.Millisecond, 20)
	want(false, "ten in a second")
	each(17, 3*time.Millisecond, 1)
	want(false, "a burst")
	each(1, 100*time.Millisecond, 20)
	each(2, time.Millisecond, 39)
	want(false, "a flow that began just now")
	each(2, time.Millisecond, 50)
	want(true, "2,000 in a second")
	for range 10 { // the first comes right after a span began
		each(80, longestRound, 1)
		want(true, "2,000 in a second, in rounds")
	}
	each(0, longestRound, 3)
	want(true, "2,000 in a second, and looks at nothing")
	each(1, time.Second, 1)
	want(false, "a second later")
}
