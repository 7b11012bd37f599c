package bench

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// TestLapsesAreCounted: each message is wanted twice, its second time not before it is due.
func TestLapsesAreCounted(t *testing.T) {
	first := newLedger(5)
	s := &lapses{first: first, again: first.twin(), due: make([]atomic.Int64, 5)}
	take := s.taker(s.late.one())
	deliver := func(number int64, attempt int32, due time.Time) (ack bool) {
		body := make([]byte, minBody)
		first.body(body, number, time.Now())
		return take(&message.Message{Body: body, ReconsumeTimes: attempt}, receipt.Handle{PopTime: due.UnixMilli()})
	}
	now := time.Now()
	past, future := now.Add(-50*time.Millisecond), now.Add(time.Hour)

	// 0 as it should be, 1 too early, 2 only once, 3 without a first time, 4 never; 0 once more.
	for _, d := range []struct {
		number  int64
		attempt int32
		due     time.Time
		ack     bool
	}{
		{0, 0, past, false}, {0, 1, now, true},
		{1, 0, future, false}, {1, 1, now, true},
		{2, 0, past, false},
		{3, 1, now, true},
		{0, 1, now, false},
	} {
		if ack := deliver(d.number, d.attempt, d.due); ack != d.ack {
			t.Errorf("delivery %+v is acknowledged: %v", d, ack)
		}
	}
	r := s.result("test", Options{}, measured{took: time.Second})
	if r.Lost != 4 || !slices.Equal(r.LostFirst, []int64{2, 4, 3, 4}) {
		t.Errorf("lost %d: %v", r.Lost, r.LostFirst)
	}
	if r.Duplicates != 2 || !slices.Equal(r.TwiceFirst, []int64{1, 0}) {
		t.Errorf("duplicates %d: %v", r.Duplicates, r.TwiceFirst)
	}
	if r.Latency.Max < 50 || r.Latency.Max > 60_000 {
		t.Errorf("late %+v", r.Latency)
	}
}
