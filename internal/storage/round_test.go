package storage_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

// What is held back in a round is written at the end of one, or along with what others
// append.
func TestHeldAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds round.Rounds
		s := storetest.Open(t, storage.Options{FS: vfs.NewMem(), Rounds: &rounds, CheckpointInterval: time.Hour})
		var done atomic.Int64
		appends := 0
		hold := func(n int) {
			for range n {
				s.Engine.AppendHeld(storetest.Message("orders", 0, appends, 100), func(_ storage.Placed, err error) {
					if err != nil {
						t.Error(err)
					}
					done.Add(1)
				})
				appends++
			}
			synctest.Wait()
		}
		expect := func(when string, n int) {
			t.Helper()
			if got := done.Load(); got != int64(n) || s.Engine.MaxOffset("orders", 0) != int64(n) {
				t.Errorf("%s: %d done and %d to be read, want %d", when, got, s.Engine.MaxOffset("orders", 0), n)
			}
		}
		end := func() {
			rounds.End()
			s.Engine.Settle()
		}
		hold(1)
		expect("without a round", 1)

		rounds.Begin()
		hold(2)
		expect("in a round", 1)
		end() // on this goroutine
		expect("at its end", 3)

		rounds.Begin()
		rounds.Begin()
		hold(1)
		end()
		expect("at the end of one of two", 4)
		hold(1)
		expect("in the other", 4)
		end()
		expect("at its end", 5)

		rounds.Begin()
		hold(1)
		s.Engine.Append(storetest.Message("orders", 0, appends, 100), func(storage.Placed, error) { done.Add(1) })
		appends++
		synctest.Wait()
		expect("others append", 7)
		hold(50)
		end()
		synctest.Wait() // the writer does it
		expect("much", 57)
		s.Engine.Settle()
		expect("nothing is held", 57)
		rounds.Begin()
		hold(50)
		expect("much, in a loop's round", 57)
		rounds.End()
		s.Engine.SettleAll() // on this goroutine
		expect("at its end", 107)
		s.Engine.SettleAll()
		expect("nothing is held again", 107)
	})
}

// A round in which an append waits for room is no round meanwhile, so what it holds back is
// written and makes room.
func TestHeldAppendsMakeRoom(t *testing.T) {
	var rounds round.Rounds
	s := storetest.Open(t, storage.Options{FS: vfs.NewMem(), Rounds: &rounds, MaxOpenBytes: 20 << 10, BusyAfter: time.Minute, CheckpointInterval: time.Hour})
	var woken atomic.Int64
	rounds.Wake(func() { woken.Add(1) })
	var done sync.WaitGroup
	rounds.Begin()
	for n := range 100 {
		done.Add(1)
		s.Engine.AppendHeld(storetest.Message("orders", 0, n, 1000), func(_ storage.Placed, err error) {
			if err != nil {
				t.Error(err)
			}
			done.Done()
		})
	}
	if !rounds.Open() {
		t.Error("the round is over")
	}
	rounds.End()
	s.Engine.Settle()
	done.Wait()
	if rounds.Open() || woken.Load() == 0 {
		t.Errorf("open %t, loops woken %d times", rounds.Open(), woken.Load())
	}
}

// However rounds of many readers and appends of others fall together, everything is
// written, told of once and dispatched in order, through a stop and a failing disk too.
func TestRoundsLoseNothing(t *testing.T) {
	for seed := range uint64(4) {
		var fail atomic.Bool
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWriteAt && fail.CompareAndSwap(true, false) {
				return errorfs.ErrInjected
			}
			return nil
		}))
		var rounds round.Rounds
		var next atomic.Int64 // that is dispatched
		s := storetest.Open(t, storage.Options{FS: fs, Rounds: &rounds, OnDispatch: func(all []storage.Dispatched) {
			for _, d := range all {
				if !next.CompareAndSwap(d.QueueOffset, d.QueueOffset+1) {
					t.Errorf("offset %d is dispatched, the next is %d", d.QueueOffset, next.Load())
				}
			}
		}})
		var stored, refused atomic.Int64
		var all, told sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				for n := range 200 {
					reader := i > 0
					if reader {
						rounds.Begin()
					}
					for range 1 + r.IntN(1+r.IntN(8)) {
						told.Add(1)
						var once atomic.Bool
						put := s.Engine.Append
						if reader && r.IntN(4) > 0 {
							put = s.Engine.AppendHeld
						}
						put(storetest.Message("orders", 0, n, 50), func(_ storage.Placed, err error) {
							if !once.CompareAndSwap(false, true) {
								t.Error("told twice")
							}
							if err == nil {
								stored.Add(1)
							} else {
								refused.Add(1)
							}
							told.Done()
						})
					}
					if reader {
						rounds.End()
						s.Engine.Settle()
					}
					if r.IntN(100) == 0 {
						fail.Store(seed == 3)
					}
				}
			})
		}
		all.Wait()
		told.Wait()
		fail.Store(false)
		s.AwaitDispatch(s.Engine.LogEnd())
		if got := s.Engine.MaxOffset("orders", 0); got != stored.Load() || refused.Load() > 0 && seed != 3 {
			t.Errorf("%d stored, %d refused, %d to be read", stored.Load(), refused.Load(), got)
		}
		s.CloseChecked()
	}
}
