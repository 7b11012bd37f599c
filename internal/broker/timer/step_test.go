package timer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/clock"
)

// The machine's clock is set forward while the server sleeps: what is due by it comes soon,
// timers and delay levels alike.
func TestClockSetForward(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := yearly(t, brokertest.Options{Clock: c}, "T")
	send(t, b, "T", "timer", "TIMER_DELAY_SEC\x013600\x02")
	send(t, b, "T", "level", "DELAY\x0117\x02") // an hour
	send(t, b, "T", "later", "TIMER_DELAY_SEC\x017300\x02")
	c.Step(time.Hour)
	brokertest.Until(t, "delivery", func() bool { return b.Store.MaxOffset("T", 0) == 2 })
	got := bodies(t, b, "T")
	if slices.Sort(got); !slices.Equal(got, []string{"level", "timer"}) {
		t.Errorf("delivered %v", got)
	}
}

// The machine's clock is set back: a timer is for what it shows, be it sent before or after
// that; a delay takes as long as it was to take.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := yearly(t, brokertest.Options{Clock: c}, "T")
	at := func(ms int64) string { return fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", ms) }
	noon := c.WallMilli() + time.Hour.Milliseconds()
	send(t, b, "T", "noon", at(noon))
	send(t, b, "T", "level", "DELAY\x0117\x02")
	c.Step(-2 * time.Hour)
	send(t, b, "T", "soon", at(c.WallMilli()+61*time.Minute.Milliseconds()))
	expect := func(after time.Duration, want ...string) {
		t.Helper()
		c.Advance(after)
		b.Dispatched()
		if got := bodies(t, b, "T"); !slices.Equal(got, want) {
			t.Errorf("%v ahead there are %v, want %v", after, got, want)
		}
	}
	expect(59 * time.Minute)
	c.Advance(30 * time.Second)
	b = b.Restart()
	expect(2*time.Minute, "level", "soon")
	expect(115*time.Minute, "level", "soon")
	expect(5*time.Minute, "level", "soon", "noon")
}
