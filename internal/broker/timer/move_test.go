package timer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
)

// A message that is due in a year is there in a year, whatever becomes of the log files that
// it was in: it is moved with each of them, counted once, and delivered once.
func TestTimersOutliveTheirLogFiles(t *testing.T) {
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c, NearTimers: 4, Tune: func(_ *config.Broker, s *config.Store) {
		s.FileReservedTime, s.TimerMaxDelaySec = 72, 400*24*3600
	}})
	for _, name := range []string{"orders", "filler", "gone"} {
		cfg := topic.New(name)
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range 20 {
		body := fmt.Sprintf("late-%03d", i)
		want = append(want, body)
		send(t, b, "orders", body, fmt.Sprintf("TIMER_DELAY_SEC\x01%d\x02", 365*24*3600+60*i))
		send(t, b, "gone", body, "TIMER_DELAY_SEC\x0131536000\x02")
	}
	if err := b.Admin.DeleteTopic("gone"); err != nil {
		t.Fatal(err)
	}
	var low int64
	fill := func() {
		t.Helper()
		for range 120 { // more than two log files
			send(t, b, "filler", strings.Repeat("x", 20_000), "")
		}
		b.Dispatched()
	}
	for range 3 {
		fill()
		c.Advance(80 * time.Hour)
		fill()
		from := b.Store.LogMin()
		brokertest.Until(t, "the log files to go", func() bool { // not before a checkpoint
			if err := b.Store.DeleteExpired(); err != nil {
				t.Fatal(err)
			}
			low = b.Store.LogMin()
			return low >= from+2<<20
		})
		b.Dispatched()
		if got := b.Wheel.Counts(); len(got) != 1 || got["orders"] != 20 {
			t.Fatalf("%v wait", got)
		}
		b = b.Restart().Kill()
	}
	if got := bodies(t, b, "orders"); len(got) != 0 {
		t.Fatalf("delivered too early: %v", got)
	}
	c.Advance(366 * 24 * time.Hour)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered %v", got)
	}
	b = b.Restart()
	c.Advance(366 * 24 * time.Hour)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered again: %v", got)
	}
	if got := b.Wheel.Counts(); len(got) != 0 {
		t.Errorf("%v still wait", got)
	}
}
