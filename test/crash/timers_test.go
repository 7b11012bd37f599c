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

// TestTimersDueTogether is R076: so many timers are due in the same millisecond, and while they
// are delivered the server is stopped in order, another time killed. Each comes once, and none
// early.
func TestTimersDueTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills servers; runs without -short, and with 50,000 timers by make long")
	}
	timers := 1000
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

// batch is timers that are due together.
type batch struct {
	first, last int64
	due         time.Time
}

// timers ends the server in order while a batch is delivered, and then by kill -9, until that has
// come between two of its deliveries: the copies are told apart by when they were stored.
func (r *run) timers(n int64) {
	s := r.start(0)
	defer func() { s.Stop() }()
	// What storing takes on this machine, by timers that are not due: three times as long is enough.
	const probes, kills = 50, 3
	began := time.Now()
	r.storeTimers(s, batch{kills*n + n + 1, kills*n + n + probes, began.Add(24 * time.Hour)})
	each := time.Since(began) / probes
	amidst := false
	for i := int64(0); i <= kills && !amidst && !r.t.Failed(); i++ {
		b := batch{i*n + 1, i*n + n, time.Now().Add(time.Second + 3*each*time.Duration(n))}
		r.storeTimers(s, b)
		if left := time.Until(b.due); left <= 0 {
			r.t.Fatalf("the machine is too slow: the timers were stored %v after they were due", -left)
		}
		r.awaitCopies(s, b)
		if i > 0 {
			s.Kill()
		} else if err := s.Stop(); err != nil {
			r.t.Errorf("stop: %v", err)
		}
		ended := time.Now()
		s = r.start(int(i) + 1)
		before, after := r.wantOnce(s, b, ended)
		amidst = i > 0 && before > 0 && after > 0
		r.t.Logf("killed: %v; %d were delivered before that, %d after the next start", i > 0, before, after)
	}
	if !amidst {
		r.t.Errorf("none of %d kills came between two deliveries: this run proves nothing", kills)
	}
}

// awaitCopies returns when some of a batch are delivered, few as a rule.
func (r *run) awaitCopies(s *servers.Server, b batch) {
	c, err := load.DialRemoting(r.t.Context(), placeOf(s))
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	const queue, queues = 0, 4
	limit := b.due.Add(time.Minute)
	offset := (b.first - 1) / queues // what earlier batches have there
	for last := offset + r.random.Int64N((b.last-b.first)/64+1); offset <= last; {
		some, err := c.Await(queue, offset, 20*time.Second)
		switch {
		case err != nil:
			r.t.Fatal(err)
		case some:
			offset++
		case time.Now().After(limit):
			r.t.Fatal("nothing was delivered within a minute")
		}
	}
}

// wantOnce holds that each timer of a batch comes once, and counts those that came before the
// server ended and after.
func (r *run) wantOnce(s *servers.Server, b batch, ended time.Time) (before, after int) {
	var came map[int64]int
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		came, before, after = r.came(s, b, ended)
		if int64(len(came)) > b.last-b.first || time.Now().After(limit) {
			break
		}
	}
	for i := b.first; i <= b.last; i++ {
		if came[i] != 1 {
			r.t.Errorf("timer %d of %d to %d came %d times", i, b.first, b.last, came[i])
		}
	}
	return before, after
}

// storeTimers sends a batch over some connections.
func (r *run) storeTimers(s *servers.Server, b batch) {
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
			for i := b.first + offset; i <= b.last; i += connections {
				if ok, err := c.SendTimer(i, b.due); !ok {
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

// came counts what of a batch is in the topic, and how many of that were stored until a moment
// and after it.
func (r *run) came(s *servers.Server, b batch, moment time.Time) (counts map[int64]int, before, after int) {
	c, err := load.DialRemoting(r.t.Context(), placeOf(s))
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	counts = make(map[int64]int)
	err = c.Each(func(n int64, m *message.Message) {
		if n < b.first || n > b.last {
			return
		}
		counts[n]++
		if m.StoreTimestamp <= moment.UnixMilli() {
			before++
		} else {
			after++
		}
		if early := b.due.UnixMilli() - m.StoreTimestamp; early > 0 {
			r.t.Errorf("timer %d came %d ms early", n, early)
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return counts, before, after
}
