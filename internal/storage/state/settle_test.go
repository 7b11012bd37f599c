package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

// inRounds opens an empty database that knows of rounds, and runs its loops until stop.
func inRounds(t *testing.T, rounds *round.Rounds) (d *DB, stop func()) {
	t.Helper()
	d, err := Open(Options{FS: vfs.NewMem(), Dir: "state", Rounds: rounds})
	if err != nil {
		t.Fatal(err)
	}
	return d, run(t, d)
}

// What is submitted in a round is committed at its end; who waits for a commit within one
// does not wait for that.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds round.Rounds
		d, stop := inRounds(t, &rounds)
		synctest.Wait()
		var done atomic.Int64
		submit := func(n int) {
			for range n {
				d.CommitAsync(put(d, "k", "v"), func(err error) {
					if err != nil {
						t.Error(err)
					}
					done.Add(1)
				})
			}
			synctest.Wait()
		}
		expect := func(when string, n int64) {
			t.Helper()
			if got := done.Load(); got != n {
				t.Errorf("%s: %d committed, want %d", when, got, n)
			}
		}
		submit(1)
		expect("without a round", 1)
		rounds.Begin()
		submit(2)
		expect("in a round", 1)
		rounds.End()
		d.Settle()
		expect("at its end", 3)
		rounds.Begin()
		submit(1)
		if err := d.Commit(put(d, "a", "b")); err != nil {
			t.Error(err)
		}
		expect("somebody waits", 4)
		submit(20)
		rounds.End()
		d.Settle()
		synctest.Wait() // the committer does it
		expect("much", 24)
		rounds.Begin()
		submit(1)
		rounds.Pause()
		synctest.Wait()
		expect("in a pause", 25)
		rounds.Resume()
		submit(1)
		stop() // what is held is committed
		expect("at the stop", 26)
		rounds.End()
		d.Settle()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// However rounds and others fall together, each submission is answered once, in its order.
func TestSettleLosesNothing(t *testing.T) {
	var rounds round.Rounds
	d, stop := inRounds(t, &rounds)
	var all, told sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			var last atomic.Int64
			for n := range 300 {
				reader := i > 0
				if reader {
					rounds.Begin()
				}
				for range r.IntN(1 + r.IntN(10)) {
					told.Add(1)
					d.CommitAsync(put(d, fmt.Sprint("k", i), fmt.Sprint(n)), func(err error) {
						if before := last.Swap(int64(n)); err != nil || before > int64(n) {
							t.Errorf("%d after %d: %v", n, before, err)
						}
						told.Done()
					})
				}
				if r.IntN(50) == 0 {
					if err := d.Commit(put(d, "c", "d")); err != nil {
						t.Error(err)
					}
				}
				if reader {
					rounds.End()
					d.Settle()
				}
			}
		})
	}
	all.Wait()
	told.Wait()
	stop()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// openRounds opens a database that has rounds, and runs it.
func openRounds(t *testing.T, disk vfs.FS, run func(testing.TB, *DB) (stop func())) (*DB, *round.Rounds, func()) {
	t.Helper()
	r := new(round.Rounds)
	d, err := Open(Options{FS: disk, Dir: "state", SyncInterval: time.Millisecond, Rounds: r})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, d)
	for !d.room.open.Load() {
		runtime.Gosched()
	}
	return d, r, stop
}

// runFailing is run for a database that fails.
func runFailing(_ testing.TB, d *DB) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, l := range d.Loops() {
		wg.Go(func() { _ = l.Run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// A source that is refused by Settle, because the disk is found to be full just then, must
// be collected by itself when there is room: nobody asks again.
func TestRefusedBySettle(t *testing.T) {
	disk := storetest.NewDisk(vfs.NewMem(), 64*mib)
	d, r, stop := openRounds(t, disk, run)
	defer func() { stop(); d.Close() }()
	disk.Fill(mib)
	d.room.looked.Store(0)
	w := &waiter{"kept", make(chan error, 2)}
	r.Begin()
	d.CommitSource(w)
	r.End()
	d.Settle()
	if err := <-w.answers; !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	disk.Free()
	select {
	case err := <-w.answers:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("there is room, and the source is not collected")
	}
}

// A reader that settles when the disk has no room is held up until there is some, or the
// stop has begun, which waits for readers before it ends the committer.
func TestStopFreesHeldReader(t *testing.T) {
	disk := storetest.NewDisk(vfs.NewMem(), 64*mib)
	d, r, stop := openRounds(t, disk, runFailing)
	d.room.looked.Store(time.Now().Add(time.Hour).UnixNano()) // nobody sees it come
	disk.Grab()
	settled := make(chan struct{})
	go func() { // a reader
		r.Begin()
		d.CommitAsync(put(d, "first", "v"), func(error) {})
		r.End()
		d.Settle()
		close(settled)
	}()
	for !d.room.stuck.Load() {
		runtime.Gosched()
	}
	d.Quiesce()
	select {
	case <-settled:
	case <-time.After(30 * time.Second):
		t.Error("the reader is stuck in its commit")
	}
	stop()
	<-settled
	disk.Free()
	d.Close()
}

// A done function that panics in Settle must not leave the database busy for ever, unless
// somebody is told.
func TestPanicInSettle(t *testing.T) {
	d, r, stop := openRounds(t, vfs.NewMem(), run)
	defer func() { stop(); d.Close() }()
	func() {
		defer func() { recover() }() // as the poller's tasks do
		r.Begin()
		d.CommitAsync(put(d, "a", "v"), func(err error) { panic("as asked") })
		r.End()
		d.Settle()
	}()
	done := make(chan error, 1)
	d.CommitAsync(put(d, "b", "v"), func(err error) { done <- err })
	select {
	case <-done:
	case <-d.ended:
	case <-time.After(30 * time.Second):
		t.Error("nothing is committed any more, and the committer's loop has not failed")
	}
}

// from is where a source was collected.
type from struct {
	*DB
	stacks chan string
}

func (f from) Collect(b *Batch) func(error) {
	buf := make([]byte, 4<<10)
	f.stacks <- string(buf[:runtime.Stack(buf, false)])
	b.Put(Meta, []byte("k"), []byte("v"))
	return nil
}

type bulky struct{ from }

func (bulky) Bulk() {}

// A source that may have much to write, and one that has time, are collected by the loop: who
// ends a round is not held up by them. The loop comes for the one that has least time.
func TestCollectedByTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds round.Rounds
		d, stop := inRounds(t, &rounds)
		synctest.Wait()
		stacks := make(chan string, 10)
		settled := func(what string, loop bool) {
			t.Helper()
			synctest.Wait()
			select {
			case stack := <-stacks:
				if byLoop := !strings.Contains(stack, ".Settle("); byLoop != loop {
					t.Errorf("%s: collected by the loop %v, want %v\n%s", what, byLoop, loop, stack)
				}
			default:
				t.Errorf("%s: was not collected", what)
			}
		}
		round := func(f func()) {
			rounds.Begin()
			f()
			synctest.Wait()
			rounds.End()
			d.Settle()
		}
		light, heavy := from{d, stacks}, bulky{from{d, stacks}}
		round(func() { d.CommitSource(light) })
		settled("little", false)
		round(func() { d.CommitSource(heavy) })
		settled("much", true)
		d.CommitSourceWithin(light, time.Second)
		synctest.Wait() // the loop sleeps for so long
		round(func() { d.CommitAsync(put(d, "a", "b"), nil) })
		synctest.Wait()
		if len(stacks) != 0 {
			t.Errorf("what had time was collected in a round:\n%s", <-stacks)
		}
		began := time.Now()
		d.CommitSourceWithin(heavy, 10*time.Millisecond)
		time.Sleep(20 * time.Millisecond)
		settled("with the least time", true)
		settled("with it", true)
		if since := time.Since(began); since > 20*time.Millisecond {
			t.Errorf("after %v", since)
		}
		stop()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
