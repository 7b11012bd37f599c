// Package crash kills the real binary with kill -9 at random moments under load, again and
// again on one data folder, and then asks what it answered for:
//
//   - every message that a producer got an OK for is there, once;
//   - no message that a consumer got an OK for its acknowledgement comes again;
//   - every other message still comes.
//
// Timers that are all due in one second are another load: each comes once, none early,
// whatever ends the server while they are delivered.
//
// BOLIDE_CRASH_ROUNDS is the number of kills (2 when empty), BOLIDE_CRASH_SEED repeats a
// run's random moments, BOLIDE_BINARY names a binary that is built already, and BOLIDE_CRASH_KEEP
// a folder in which the data of a run that failed is left, BOLIDE_CRASH_TIMERS the number
// of timers that are due together (1,000 when empty).
package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/test/load"
	"github.com/bolidemq/bolide/test/servers"
)

func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills servers; runs without -short, and 100 rounds of it by make crash")
	}
	binary := binaryOf(t)
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("BOLIDE_CRASH_SEED"), 10, 64); err == nil {
		seed = s
	}
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("BOLIDE_CRASH_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	for _, flush := range []string{"ASYNC_FLUSH", "SYNC_FLUSH"} {
		t.Run(flush, func(t *testing.T) {
			t.Logf("seed %d, %d kills", seed, rounds)
			dir := t.TempDir()
			if keep := os.Getenv("BOLIDE_CRASH_KEEP"); keep != "" {
				dir = filepath.Join(keep, flush)
			}
			at, err := servers.FreePlace()
			if err != nil {
				t.Fatal(err)
			}
			r := &run{
				t: t, binary: binary, dir: dir, flush: flush, at: at,
				random: rand.New(rand.NewPCG(seed, 1)),
				ledger: load.NewLedger(t.Errorf),
			}
			for i := range rounds {
				r.round(i)
				if t.Failed() {
					return
				}
			}
			r.settle()
		})
	}
}

// binaryOf is the binary to run.
func binaryOf(t *testing.T) string {
	binary := os.Getenv("BOLIDE_BINARY")
	if binary == "" {
		var err error
		if binary, err = servers.BuildBolide(t.Context(), t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	return binary
}

// run is one series of kills on one data folder.
type run struct {
	t      *testing.T
	binary string
	dir    string
	flush  string
	random *rand.Rand
	ledger *load.Ledger
	at     *servers.Ready // addresses of all starts
	topic  bool           // is made
}

const producers = 6

func placeOf(s *servers.Server) load.Place {
	return load.Place{Broker: s.Broker, GRPC: s.GRPC, Topic: "crash", Group: "crash-group", Queues: 4}
}

func (r *run) start(i int) *servers.Server {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	s, err := servers.StartBolide(ctx, servers.BolideOptions{
		Binary: r.binary, Dir: r.dir, Again: r.at,
		Args: []string{"--set", "flushDiskType=" + r.flush},
	})
	if err != nil {
		r.t.Fatalf("start %d: %v", i, err)
	}
	if !r.topic {
		c, err := load.DialRemoting(ctx, placeOf(s))
		if err == nil {
			err = c.CreateTopic()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		c.Close()
		r.topic = true
	}
	return s
}

// round starts the server, loads it, and kills it at a random moment.
func (r *run) round(i int) {
	s := r.start(i)
	ctx, cancel := context.WithCancel(r.t.Context())
	var clients sync.WaitGroup
	for range producers {
		clients.Go(func() { produce(ctx, placeOf(s), r.ledger) })
	}
	for _, k := range kinds {
		clients.Go(func() { consume(ctx, r.t, placeOf(s), r.ledger, k, false) })
	}
	moment := time.Duration(50+r.random.IntN(1500)) * time.Millisecond
	select {
	case <-time.After(moment):
	case <-s.Ended():
		text, _ := os.ReadFile(filepath.Join(r.dir, "bolide.log"))
		r.t.Errorf("round %d: the server ended by itself:\n%s", i, text[max(0, len(text)-4000):])
	}
	s.Kill()
	r.ledger.Died(true)
	cancel()
	clients.Wait()
	r.t.Logf("round %d: started in %v, killed after %v", i, s.Started.Round(time.Millisecond), moment)
}

// settle reads the whole topic, then consumes until nothing has come for some invisible times.
func (r *run) settle() {
	s := r.start(-1)
	defer s.Stop()
	reader, err := load.DialRemoting(r.t.Context(), placeOf(s))
	if err != nil {
		r.t.Fatal(err)
	}
	counts, err := reader.ReadAll()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Log(r.ledger.CheckStored(counts))

	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	var clients sync.WaitGroup
	for _, k := range kinds {
		clients.Go(func() { consume(ctx, r.t, placeOf(s), r.ledger, k, true) })
	}
	clients.Wait()
	sum, _ := r.ledger.Settle()
	r.t.Logf("%d acknowledged, %d times over gRPC, %d acknowledgements without an answer, %d changes, %d came again for a cause, %d after an OK, %d left",
		sum.Acked, overGRPC.Swap(0), sum.AckUnanswered, sum.Extended, sum.Duplicates, sum.Redelivered, sum.Lost)
}
