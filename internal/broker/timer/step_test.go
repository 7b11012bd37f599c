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
// timers and delay levels alike. A machine that was suspended looks the same.
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

func at(ms int64) string { return fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", ms) }

func after(d time.Duration) string { return fmt.Sprintf("TIMER_DELAY_MS\x01%d\x02", d.Milliseconds()) }

// ahead moves the time and expects what is delivered then, in any order.
func ahead(t *testing.T, b *brokertest.Broker, by time.Duration, want ...string) {
	t.Helper()
	b.Clock.Advance(by)
	b.Dispatched()
	got := bodies(t, b, "T")
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%v ahead there are %v, want %v", by, got, want)
	}
}

// The machine's clock is set back: a timer is for what it shows, be it sent before or after
// that; a delay takes as long as it was to take, by level or by time, be it sent before or after,
// and whether memory or the database alone has it.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := yearly(t, brokertest.Options{Clock: c, NearTimers: 4}, "T")
	noon := c.WallMilli() + time.Hour.Milliseconds()
	before := []string{"noon"}
	send(t, b, "T", "noon", at(noon))
	for i := range 6 { // more than memory has
		before = append(before, fmt.Sprint("noon", i))
		send(t, b, "T", before[i+1], at(noon-60_000))
	}
	send(t, b, "T", "level", "DELAY\x0117\x02")
	send(t, b, "T", "delay", after(time.Hour))
	for i := range 20 {
		send(t, b, "T", fmt.Sprint("year", i), after(year+time.Duration(i)*time.Second))
	}
	c.Step(-2 * time.Hour)
	send(t, b, "T", "soon", at(c.WallMilli()+61*time.Minute.Milliseconds()))
	send(t, b, "T", "more", after(90*time.Minute))
	ahead(t, b, 59*time.Minute)
	b.Clock.Advance(30 * time.Second)
	b = b.Restart()
	ahead(t, b, 2*time.Minute, "level", "delay", "soon")
	b.Dispatched()
	b = b.Kill()
	ahead(t, b, 28*time.Minute, "level", "delay", "soon")
	ahead(t, b, time.Minute, "level", "delay", "soon", "more")
	ahead(t, b, 86*time.Minute, "level", "delay", "soon", "more")
	ahead(t, b, 5*time.Minute, append(before, "level", "delay", "soon", "more")...)
	if n := b.Wheel.Counts()["T"]; n != 20 {
		t.Errorf("%d wait, want 20", n)
	}
}

// The machine's clock is set back: those that wait are listed with what it will show when they
// come, a delay as far off as it is.
func TestListAfterClockSetBack(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := yearly(t, brokertest.Options{Clock: c}, "T")
	send(t, b, "T", "time", at(c.WallMilli()+time.Hour.Milliseconds()))
	send(t, b, "T", "delay", after(2*time.Hour))
	b.Dispatched()
	list := func() (text string) {
		t.Helper()
		all, err := b.Wheel.List("T", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			text += fmt.Sprintf("%s in %s; ", one.UniqKey, (time.Duration(one.Due-c.WallMilli()) * time.Millisecond).Round(10*time.Minute))
		}
		return text
	}
	if got := list(); got != "time in 1h0m0s; delay in 2h0m0s; " {
		t.Errorf("before: %s", got)
	}
	c.Step(-3 * time.Hour)
	if got := list(); got != "delay in 2h0m0s; time in 4h0m0s; " {
		t.Errorf("afterwards: %s", got)
	}
}

// The machine's clock is set back before a restart: a delay takes as long as it was to take, be it
// sent before or after, and whether that is more or less than the clock was set back by. How long
// the server was down does not count; how long it idled before that does, where it was stopped.
func TestRestartWithAClockSetBack(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name    string
		back    time.Duration
		counted time.Duration // of what had passed
		end     func(b *brokertest.Broker, c *clock.Clock) *brokertest.Broker
	}{
		{"stop", 20 * time.Minute, 30 * time.Minute, (*brokertest.Broker).RestartAt},
		{"stop, far", 20 * time.Hour, 30 * time.Minute, (*brokertest.Broker).RestartAt},
		{"kill", 20 * time.Minute, 0, (*brokertest.Broker).KillAt},
		{"kill, far", 20 * time.Hour, 0, (*brokertest.Broker).KillAt},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			const day = 24 * time.Hour
			c, back := clock.New(), clock.New()
			c.Step(day)
			back.Step(day - end.back)
			b := yearly(t, brokertest.Options{Clock: c}, "T")
			send(t, b, "T", "before", "DELAY\x0117\x02") // an hour
			send(t, b, "T", "delay", after(time.Hour))
			b.Dispatched()
			c.Advance(30 * time.Minute)
			b = end.end(b, back)
			send(t, b, "T", "after", "DELAY\x019\x02") // five minutes
			b.Dispatched()
			ahead(t, b, 0)
			ahead(t, b, 4*time.Minute)
			ahead(t, b, 2*time.Minute, "after")
			send(t, b, "T", "later", "DELAY\x019\x02")
			b.Dispatched()
			ahead(t, b, 4*time.Minute, "after")
			ahead(t, b, 2*time.Minute, "after", "later")
			ahead(t, b, 47*time.Minute-end.counted, "after", "later")
			ahead(t, b, 2*time.Minute, "after", "later", "before", "delay")
		})
	}
}
