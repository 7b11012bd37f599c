package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/test/load"
	"github.com/bolidemq/bolide/test/servers"
)

// TestTimersDueTogether is R076: so many timers are due in the same second, and while they are
// delivered the server is stopped in order and killed. Each comes once, and none early.
func TestTimersDueTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills servers; runs without -short, and with 50,000 timers by make long")
	}
	timers := 3000
	if n, err := strconv.Atoi(os.Getenv("BOLIDE_CRASH_TIMERS")); err == nil && n > 0 {
		timers = n
	}
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("BOLIDE_CRASH_SEED"), 10, 64); err == nil {
		seed = s
	}
	binary := binaryOf(t)
	for _, flush := range []string{"ASYNC_FLUSH", "SYNC_FLUSH"} {
		t.Run(flush, func(t *testing.T) {
			t.Logf("seed %d, %d timers", seed, timers)
			at, err := servers.FreePlace()
			if err != nil {
				t.Fatal(err)
			}
			r := &run{t: t, binary: binary, dir: t.TempDir(), flush: flush, at: at, random: rand.New(rand.NewPCG(seed, 2))}
			r.timers(int64(timers))
		})
	}
}

func (r *run) timers(n int64) {
	s := r.start(0)
	// What storing takes on this machine, by timers that are not due: three times as long is enough.
	const probes = 100
	began := time.Now()
	r.storeTimers(s, n+1, n+probes, began.Add(24*time.Hour))
	due := time.Now().Add(2*time.Second + 3*time.Since(began)*time.Duration(n)/probes)
	r.storeTimers(s, 1, n, due)
	if left := time.Until(due); left <= 0 {
		r.t.Fatalf("the machine is too slow: the timers were stored %v after they were due", -left)
	}
	time.Sleep(time.Until(due))
	for i, kill := range []bool{false, true, true, false} {
		moment := 10*time.Millisecond + time.Duration(r.random.Int64N(n/40+1))*time.Millisecond
		time.Sleep(moment)
		if kill {
			s.Kill()
		} else if err := s.Stop(); err != nil {
			r.t.Errorf("stop %d: %v", i, err)
		}
		s = r.start(i + 1)
		r.t.Logf("ended after %v, killed: %v; %d there", moment, kill, len(r.came(s, due)))
	}
	defer s.Stop()
	var came map[int64]int
	for limit := time.Now().Add(time.Minute); int64(len(came)) < n && time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		came = r.came(s, due)
	}
	for i := int64(1); i <= n; i++ {
		if came[i] != 1 {
			r.t.Errorf("timer %d of %d came %d times", i, n, came[i])
		}
	}
}

// storeTimers sends the timers from first to last over some connections.
func (r *run) storeTimers(s *servers.Server, first, last int64, due time.Time) {
	var senders sync.WaitGroup
	const connections = 8
	for offset := range int64(connections) {
		senders.Go(func() {
			c, err := load.DialRemoting(r.t.Context(), placeOf(s))
			if err != nil {
				r.t.Error(err)
				return
			}
			defer c.Close()
			for i := first + offset; i <= last; i += connections {
				if ok, err := c.SendTimer(i, due); !ok {
					r.t.Errorf("timer %d was not stored: %v", i, err)
					return
				}
			}
		})
	}
	senders.Wait()
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// came counts what is in the topic.
func (r *run) came(s *servers.Server, due time.Time) map[int64]int {
	c, err := load.DialRemoting(r.t.Context(), placeOf(s))
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	counts := make(map[int64]int)
	err = c.Each(func(n int64, m *message.Message) {
		counts[n]++
		if early := due.UnixMilli() - m.StoreTimestamp; early > 0 {
			r.t.Errorf("timer %d came %d ms early", n, early)
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return counts
}
