package timer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/clock"
)

// isRight fails where the protocol's time is ahead of the machine's clock.
func isRight(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	if now, wall := b.Clock.Read(); now-wall > 2*time.Second.Milliseconds() {
		t.Errorf("the time is %v ahead", time.Duration(now-wall)*time.Millisecond)
	}
}

// The machine's clock was a year ahead for a while. As long as the process lives, delays take as
// long as they were to take; after a restart the time is right at once, and they still do. One that
// was stamped then waits from the start.
func TestAClockThatWasAYearAhead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*brokertest.Broker, *clock.Clock) *brokertest.Broker{
		"stop": (*brokertest.Broker).RestartAt, "kill": (*brokertest.Broker).KillAt,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clock.New()
			b := yearly(t, brokertest.Options{Clock: c}, "T")
			c.Step(year)
			send(t, b, "T", "wrong", "DELAY\x019\x02") // five minutes
			c.Step(-year)
			send(t, b, "T", "wrong, later", "DELAY\x0117\x02") // an hour
			b.Dispatched()
			ahead(t, b, 4*time.Minute)
			b = end(b, clock.New())
			isRight(t, b)
			send(t, b, "T", "right", "DELAY\x019\x02")
			send(t, b, "T", "right, too", after(5*time.Minute))
			b.Dispatched()
			ahead(t, b, 4*time.Minute)
			ahead(t, b, 2*time.Minute, "wrong", "right", "right, too")
			send(t, b, "T", "last", "DELAY\x019\x02")
			b.Dispatched()
			ahead(t, b, 4*time.Minute, "wrong", "right", "right, too")
			ahead(t, b, 2*time.Minute, "wrong", "right", "right, too", "last")
			b = b.Restart()
			isRight(t, b)
			ahead(t, b, time.Hour, "wrong", "right", "right, too", "last", "wrong, later")
		})
	}
}

// From what another server has stamped nobody takes the time, not even from a wrong time zone:
// the delays beside it, stamped rightly, are not over.
func TestAnotherServersClockWasAhead(t *testing.T) {
	t.Parallel()
	c, fs := clock.New(), vfs.NewCrashableMem()
	b := yearly(t, brokertest.Options{Clock: c, FS: fs}, "T")
	send(t, b, "T", "right", "DELAY\x0118\x02") // two hours
	send(t, b, "T", "right, too", after(2*time.Hour))
	c.Step(time.Hour)
	send(t, b, "T", "wrong", "")
	b.Dispatched()
	theirs := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	if err := theirs.Remove("data/checkpoint"); err != nil {
		t.Fatal(err)
	}
	b = yearly(t, brokertest.Options{FS: theirs})
	isRight(t, b)
	send(t, b, "T", "ours", "DELAY\x019\x02") // five minutes
	b.Dispatched()
	ahead(t, b, 4*time.Minute, "wrong")
	ahead(t, b, 2*time.Minute, "wrong", "ours")
	ahead(t, b, 113*time.Minute, "wrong", "ours")
	ahead(t, b, 2*time.Minute, "wrong", "ours", "right", "right, too")
}
