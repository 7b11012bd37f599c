package timer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
)

// A start with fewer delay levels is one like any other. What waits in a level that is not there
// any more is counted, outlives its log file, and comes when the level is back.
func TestFewerDelayLevels(t *testing.T) {
	t.Parallel()
	c := clock.New()
	levels := "1s 5s 1h 2h"
	b := brokertest.Open(t, brokertest.Options{Clock: c, Tune: func(_ *config.Broker, s *config.Store) {
		s.FileReservedTime, s.MessageDelayLevel = 1, levels
	}})
	for _, name := range []string{"orders", "filler"} {
		cfg := topic.New(name)
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(want int64) {
		t.Helper()
		b.Dispatched()
		if n, err := b.Timer.Waiting(); err != nil || n["orders"] != want {
			t.Errorf("%v wait, %v", n, err)
		}
	}
	send(t, b, "orders", "first", "DELAY\x013\x02")
	b.Dispatched()
	c.Advance(time.Hour)
	want := []string{"first", "hour", "hours"}
	send(t, b, "orders", want[1], "DELAY\x013\x02")
	send(t, b, "orders", want[2], "DELAY\x014\x02")
	waits(2)

	levels = "1s 5s"
	b = b.Restart()
	waits(2)
	fill(t, b)
	c.Advance(4 * time.Hour)
	fill(t, b)
	brokertest.Until(t, "the log file to go", func() bool { // not before a checkpoint
		if err := b.Store.DeleteExpired(); err != nil {
			t.Fatal(err)
		}
		return b.Store.LogMin() >= 1<<20
	})
	waits(2)
	b = b.Kill()
	waits(2)

	levels = "1s 5s 1h 2h"
	b = b.Restart()
	c.Advance(time.Second)
	brokertest.Until(t, "delivery", func() bool { b.Dispatched(); return b.Store.MaxOffset("orders", 0) == 3 })
	waits(0)
	if got := bodies(t, b, "orders"); !slices.Equal(got, want[1:]) { // the first went with its log file
		t.Errorf("delivered %v", got)
	}
}
