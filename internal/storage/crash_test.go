package storage_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// seed is printed with every random test; SEED repeats one.
func seed(t *testing.T) *rand.Rand {
	n := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("SEED=%d", n)
	return rand.New(rand.NewPCG(n, n))
}

// acked is what was answered with success: where it is and what it said.
type acked struct {
	sync.Mutex
	at map[string]storage.Placed
}

func (a *acked) copy() map[string]storage.Placed {
	a.Lock()
	defer a.Unlock()
	c := make(map[string]storage.Placed, len(a.at))
	for k, v := range a.at {
		c[k] = v
	}
	return c
}

// load appends with several senders until stop is closed.
func load(s *storetest.Store, from int, rng *rand.Rand, stop chan struct{}, a *acked) *sync.WaitGroup {
	var wg sync.WaitGroup
	for w := range 4 {
		size := 50 + rng.IntN(1500)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := from + w; ; i += 4 {
				select {
				case <-stop:
					return
				default:
				}
				m := storetest.Message(fmt.Sprintf("t%d", i%3), int32(i%2), i, size)
				key := m.Properties.Value(message.PropertyUniqKey)
				p, err := s.Append(m)
				if err != nil {
					continue
				}
				a.Lock()
				a.at[m.Topic+" "+key] = p
				a.Unlock()
			}
		}()
	}
	return &wg
}

// verify holds that all of want is there, at the offset that was answered, and found by
// its key.
func verify(t *testing.T, s *storetest.Store, want map[string]storage.Placed) {
	t.Helper()
	queries := 0
	for name, p := range want {
		var topic, key string
		fmt.Sscanf(name, "%s %s", &topic, &key)
		r := s.Read(storage.ReadRequest{Topic: topic, QueueID: p.QueueID, Offset: p.QueueOffset, MaxMessages: 1})
		if r.Status != storage.Found || r.Records[0].PhysicalOffset != p.PhysicalOffset {
			t.Fatalf("%s was acknowledged at %+v and reads %v %+v", name, p, r.Status, r.Records)
		}
		var m message.Message
		if _, err := message.DecodeStored(r.Records[0].Bytes, &m); err != nil || m.Properties.Value(message.PropertyUniqKey) != key {
			t.Fatalf("%s was acknowledged at %+v, there is %q (%v)", name, p, m.Properties, err)
		}
		r.Release()
		if queries++; queries%10 == 0 {
			if found, err := s.QueryKey(topic, key, 1, 0, math.MaxInt64/4); err != nil || len(found) != 1 {
				t.Fatalf("%s is not found by its key: %v %v", name, found, err)
			}
		}
	}
}

// gapFree reads every queue from its start to its end.
func gapFree(t *testing.T, s *storetest.Store) {
	t.Helper()
	for _, q := range s.Queues() {
		if got := readAll(t, s, q.Topic, q.QueueID, nil); int64(len(got)) != s.MaxOffset(q.Topic, q.QueueID) {
			t.Fatalf("%v: read %d of %d", q, len(got), s.MaxOffset(q.Topic, q.QueueID))
		}
	}
}

// R092: every acknowledged append is readable at the offset that was answered after any
// crash; offsets are gap-free; the key query finds it. Cuts in a row on the same files,
// most of them near the change of log files, which are small here.
func TestCrash(t *testing.T) {
	kinds := []struct {
		name     string
		flush    storage.FlushPolicy
		unsynced int  // percent of what was not synced that survives
		keeps    bool // what was acknowledged
	}{
		{"process killed", storage.Async, 100, true},
		{"process killed, synchronous", storage.Sync, 100, true},
		{"power cut", storage.Async, 50, false},
		{"power cut, nothing unsynced left", storage.Async, 0, false},
		{"power cut, synchronous", storage.Sync, 50, true},
		{"power cut, synchronous, nothing unsynced left", storage.Sync, 0, true},
	}
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rng := seed(t)
			fs := vfs.NewCrashableMem()
			a := &acked{at: map[string]storage.Placed{}}
			for round := range rounds {
				o := storage.Options{FS: fs, Flush: k.flush, LogSegmentSize: 32 << 10, CheckpointInterval: time.Duration(1+rng.IntN(30)) * time.Millisecond}
				o.Events.Recovered = func(r storage.Recovery) {
					// A power cut may keep the second of two unsynced files and lose the first, which
					// a start takes for damage and makes good from the log.
					if len(r.Rebuilt) > 0 && k.unsynced == 100 {
						t.Errorf("a mere crash made a start rebuild %v", r.Rebuilt)
					}
				}
				s, err := storetest.TryOpen(t, o)
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if err := s.Check(); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				gapFree(t, s)
				if k.keeps {
					verify(t, s, a.copy())
				} else {
					a = &acked{at: map[string]storage.Placed{}}
				}
				stop := make(chan struct{})
				wg := load(s, (round+1)*100_000, rng, stop, a)
				time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond) // how long the store runs
				before := a.copy()
				clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: k.unsynced, RNG: rng})
				close(stop)
				wg.Wait()
				s.Abandon()
				fs, a = clone, &acked{at: before}
			}
			s := storetest.Open(t, storage.Options{FS: fs, LogSegmentSize: 32 << 10})
			if k.keeps {
				verify(t, s, a.copy())
			}
			gapFree(t, s)
		})
	}
}
