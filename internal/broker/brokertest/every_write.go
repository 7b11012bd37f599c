package brokertest

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

// Course is what happens to a broker that a crash ends: first what is there before, then the
// life itself, and after the last recovery a look at what was promised.
type Course interface {
	Prepare(b *Broker)
	Live(b *Broker)
	Settle(b *Broker)
}

// Life is one life of a broker.
type Life struct {
	*testing.T
	At  int // the write before which it ends
	Rng *rand.Rand
	// Clock goes on from one broker to the next.
	Clock *clock.Clock
	trap  storetest.Trap
}

// Over reports that the crash has been: what is answered from then on nobody has promised.
func (l *Life) Over() bool { return l.trap.Caught() }

// EveryWrite crashes a broker before each of the writes of a course, so that a crash comes
// between any two steps of everything that happens in it; its recovery is crashed as well.
// Power is cut under synchronous flush, the process killed under the other. Short tests take
// every seventh write.
func EveryWrite(t *testing.T, o Options, begin func(*Life) Course) {
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for _, flush := range []string{"ASYNC_FLUSH", "SYNC_FLUSH"} {
		t.Run(flush, func(t *testing.T) {
			n := 0
			for ; ; n += stride {
				l := &Life{T: t, At: n, Rng: rand.New(rand.NewPCG(uint64(n), 3)), Clock: clock.New()}
				if sprung := l.run(o, flush, begin(l)); !sprung || t.Failed() {
					break
				}
			}
			if n == 0 && !t.Failed() {
				t.Fatal("nothing was crashed: the course writes nothing")
			}
			t.Logf("crashed before each of %d writes", n)
		})
	}
}

// run reports whether the life was long enough to end before the write.
func (l *Life) run(o Options, flush string, c Course) (sprung bool) {
	tune := o.Tune
	o.FS, o.Clock, o.Wrap, o.Check = vfs.NewCrashableMem(), l.Clock, l.trap.Wrap, true
	o.Tune = func(b *config.Broker, s *config.Store) {
		s.MappedFileSizeCommitLog, s.MappedFileSizeConsume, s.MaxMessageSize = 16<<10, 20*64, 4<<10
		if tune != nil {
			tune(b, s)
		}
		s.FlushDiskType, s.FlushIntervalCommitLog = flush, 20
	}
	b := Open(l.T, o)
	c.Prepare(b)
	percent := 100 // of what was not synced survives
	if flush == "SYNC_FLUSH" {
		percent = l.Rng.IntN(3) * 50
	}
	l.trap.Arm(l.At, percent, l.Rng)
	c.Live(b)
	sprung = l.trap.Caught()
	l.trap.Disarm()
	if !sprung {
		l.trap.Arm(0, percent, l.Rng)
		l.trap.Now(o.FS)
	}
	// Twice in a row: somewhere in the recovery, and then the rest of it.
	for _, again := range []bool{true, false} {
		left := l.trap.Take()
		if left == nil {
			break // the recovery wrote less than that
		}
		b.Stop()
		o.FS = left
		if again {
			l.trap.Arm(l.Rng.IntN(40), percent, l.Rng)
		}
		b = Open(l.T, o)
		l.trap.Disarm()
	}
	c.Settle(b)
	b.Stop()
	l.trap.Take()
	if l.Failed() {
		l.Logf("it was the crash before write %d", l.At)
	}
	return sprung
}
