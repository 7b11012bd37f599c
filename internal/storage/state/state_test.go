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
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func open(t testing.TB, fs vfs.FS, sync bool) *DB {
	t.Helper()
	d, err := Open(Options{FS: fs, Dir: "state", Sync: sync, SyncInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run starts the loops and returns what ends them.
func run(t testing.TB, d *DB) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, l := range d.Loops() {
		wg.Go(func() {
			if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", l.Name, err)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

func dump(t testing.TB, d *DB, s Space) string {
	t.Helper()
	var b strings.Builder
	if err := d.Scan(s, nil, func(k, v []byte) error {
		fmt.Fprintf(&b, "%s=%s ", k, v)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func put(d *DB, kv ...string) *Batch {
	b := d.NewBatch()
	for i := 0; i < len(kv); i += 2 {
		b.Put(Topics, []byte(kv[i]), []byte(kv[i+1]))
	}
	return b
}

func TestSpacesAreApart(t *testing.T) {
	d := open(t, vfs.NewMem(), false)
	defer d.Close()
	b := put(d, "a", "1", "ab", "2", "b", "3")
	b.Put(Groups, []byte("a"), []byte("g"))
	if err := d.Commit(b); err != nil {
		t.Fatal(err)
	}
	b = d.NewBatch()
	b.DeletePrefix(Topics, []byte("a"))
	b.Put(Topics, []byte("ac"), []byte("later in the same batch"))
	if err := d.Commit(b); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, d, Topics)+"|"+dump(t, d, Groups), "ac=later in the same batch b=3|a=g"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b = d.NewBatch()
	b.DeletePrefix(Topics, nil)
	b.Delete(Groups, []byte("a"))
	if err := d.Commit(b); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, d, Topics) + dump(t, d, Groups); got != "" {
		t.Errorf("left over: %q", got)
	}
	if v, ok, err := d.Get(Topics, []byte("b")); v != nil || ok || err != nil {
		t.Error(v, ok, err)
	}
}

// counter is a source whose value changes more often than it is committed.
type counter struct {
	mu       sync.Mutex
	n        int
	collects int
	waiting  []func(error)
}

func (c *counter) Collect(b *Batch) func(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collects++
	b.Put(Meta, []byte("n"), []byte(fmt.Sprint(c.n)))
	w := c.waiting
	c.waiting = nil
	return func(err error) {
		for _, done := range w {
			done(err)
		}
	}
}

func TestOrderIsKept(t *testing.T) {
	for _, loops := range []bool{false, true} {
		t.Run(fmt.Sprint("loops=", loops), func(t *testing.T) {
			d := open(t, vfs.NewMem(), true)
			defer d.Close()
			stop := func() {}
			if loops {
				stop = run(t, d)
			}
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			const n = 2000
			for i := range n {
				wg.Add(1)
				d.CommitAsync(put(d, "k", fmt.Sprint(i)), func(err error) {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					if i%100 == 0 { // done may submit again
						wg.Add(1)
						d.CommitAsync(put(d, fmt.Sprint("again", i), ""), func(error) { wg.Done() })
					}
					wg.Done()
				})
			}
			wg.Wait()
			stop()
			for i, got := range order {
				if got != i {
					t.Fatalf("answer %d was for batch %d", i, got)
				}
			}
			if v, _, _ := d.Get(Topics, []byte("k")); string(v) != fmt.Sprint(n-1) {
				t.Errorf("last value is %s", v)
			}
			if err := d.Commit(put(d, "after", "the loops ended")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSourceIsCollectedLate(t *testing.T) {
	d := open(t, vfs.NewMem(), false)
	defer d.Close()
	defer run(t, d)()
	c := &counter{}
	const n = 5000
	var wg sync.WaitGroup
	for i := 1; i <= n; i++ {
		wg.Add(1)
		c.mu.Lock()
		c.n = i
		c.waiting = append(c.waiting, func(err error) {
			if err != nil {
				t.Error(err)
			}
			v, _, _ := d.Get(Meta, []byte("n"))
			var got int
			fmt.Sscan(string(v), &got)
			if got < i {
				t.Errorf("answered %d while the value was %d", i, got)
			}
			wg.Done()
		})
		c.mu.Unlock()
		d.CommitSource(c)
	}
	wg.Wait()
	// One more collection may be under way: the last change was asked for separately.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.collects >= n {
		t.Errorf("%d commits for %d changes", c.collects, n)
	}
}

func TestLazySourceGoesWithTheNextCommit(t *testing.T) {
	d := open(t, vfs.NewMem(), false)
	defer d.Close()
	stop := run(t, d)
	for d.nextLook() < 0 { // until the loop runs, lazy sources are committed at once
		d.CommitSourceWithin(&counter{}, time.Hour)
	}
	c := &counter{n: 1}
	d.CommitSourceWithin(c, time.Hour)
	if err := d.Commit(put(d, "company", "")); err != nil {
		t.Fatal(err)
	}
	if c.collects != 1 || d.nextLook() >= 0 {
		t.Errorf("collected %d times", c.collects)
	}
	done := make(chan error)
	c.waiting = append(c.waiting, func(err error) { done <- err })
	d.CommitSourceWithin(c, time.Millisecond)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	d.CommitSourceWithin(c, time.Hour)
	stop()
	if c.collects != 3 {
		t.Errorf("collected %d times after the loop ended", c.collects)
	}
}

// TestProcessCrash holds that what was answered survives kill -9 under both policies: the
// kernel keeps what was written, which is the clone with all unsynced data.
func TestProcessCrash(t *testing.T) {
	for _, sync := range []bool{false, true} {
		fs := vfs.NewCrashableMem()
		d := open(t, fs, sync)
		for i := range 300 {
			if err := d.Commit(put(d, fmt.Sprintf("%04d", i), strings.Repeat("x", 4000))); err != nil {
				t.Fatal(err)
			}
			if i%50 != 0 {
				continue
			}
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, uint64(i)))})
			again := open(t, clone, sync)
			if _, ok, err := again.Get(Topics, []byte(fmt.Sprintf("%04d", i))); !ok || err != nil {
				t.Fatalf("sync=%v: answered batch %d is lost: %v", sync, i, err)
			}
			again.Close()
		}
		d.Close()
	}
}

// TestPowerCut holds that after a power cut at random moments the database opens, holds a
// prefix of what was submitted, and under synchronous flush all that was answered.
func TestPowerCut(t *testing.T) {
	for _, sync := range []bool{false, true} {
		for seed := range uint64(12) {
			rng := rand.New(rand.NewPCG(seed, 7))
			fs := vfs.NewCrashableMem()
			d := open(t, fs, sync)
			n := 1 + rng.IntN(400) // up to several log files
			for i := range n {
				if err := d.Commit(put(d, fmt.Sprintf("%04d", i), strings.Repeat("x", 20000), "last", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(50) == 0 {
					if err := d.Sync(); err != nil {
						t.Fatal(err)
					}
				}
			}
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			d.Close()
			again, err := Open(Options{FS: clone, Dir: "state", Sync: sync})
			if err != nil {
				t.Fatalf("seed %d, sync=%v: %v", seed, sync, err)
			}
			last := -1
			if v, ok, _ := again.Get(Topics, []byte("last")); ok {
				fmt.Sscan(string(v), &last)
			}
			if sync && last != n-1 {
				t.Errorf("seed %d: %d was answered, %d is there", seed, n-1, last)
			}
			for i := range n {
				_, ok, err := again.Get(Topics, []byte(fmt.Sprintf("%04d", i)))
				if ok != (i <= last) || err != nil {
					t.Fatalf("seed %d, sync=%v: last is %d, %d is there: %v, %v", seed, sync, last, i, ok, err)
				}
			}
			again.Close()
		}
	}
}

// TestBeforeSync holds that nothing becomes durable before the hook has run.
func TestBeforeSync(t *testing.T) {
	for _, sync := range []bool{false, true} {
		fs := vfs.NewCrashableMem()
		// The highest value that was asked for, and the highest that the log knows. The hook
		// runs on Pebble's goroutines.
		var submitted, allowed atomic.Int64
		submitted.Store(-1)
		allowed.Store(-1)
		d, err := Open(Options{FS: fs, Dir: "state", Sync: sync, BeforeSync: func() error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		d.wal.beforeSync = func() error { allowed.Store(submitted.Load()); return nil }
		rng := rand.New(rand.NewPCG(3, 3))
		for i := range 600 { // rotates the log and flushes tables
			submitted.Store(int64(i))
			if err := d.Commit(put(d, "k", fmt.Sprint(i), "pad", strings.Repeat("x", 30000))); err != nil {
				t.Fatal(err)
			}
			if i%40 == 0 {
				again := open(t, fs.CrashClone(vfs.CrashCloneCfg{RNG: rng}), sync)
				got := -1
				if v, ok, _ := again.Get(Topics, []byte("k")); ok {
					fmt.Sscan(string(v), &got)
				}
				if int64(got) > allowed.Load() {
					t.Errorf("sync=%v: %d is durable, the hook ran at %d", sync, got, allowed.Load())
				}
				again.Close()
			}
		}
		d.Close()
	}
}

// TestEveryFault has one file operation after the other fail, while batches are committed that
// fill several log files: many small ones, and some that Pebble has no room for in its memory.
// From then on nothing is answered, and nothing answered is lost.
func TestEveryFault(t *testing.T) {
	for _, c := range []struct {
		sync          bool
		size, batches int
	}{{true, 20 << 10, 30}, {false, 20 << 10, 30}, {false, 2200 << 10, 2}} {
		for n := int32(0); faultAt(t, n, c.sync, c.size, c.batches); n++ {
			if t.Failed() {
				return
			}
		}
	}
}

// faultAt reports whether there was an n-th operation to fail.
func faultAt(t *testing.T, n int32, sync bool, size, batches int) (reached bool) {
	mem := vfs.NewCrashableMem()
	var armed atomic.Bool
	var left atomic.Int32
	left.Store(n)
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		ofLog := strings.HasSuffix(op.Path, ".log") && (op.Kind.ReadOrWrite() == errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose)
		ofFolder := op.Kind == errorfs.OpFileSync && op.Path == "state" && calledBy("rotateWAL")
		if armed.Load() && (ofLog || ofFolder) && left.Add(-1) == -1 {
			return errorfs.ErrInjected
		}
		return nil
	})
	d := open(t, errorfs.Wrap(mem, inject), sync)
	armed.Store(true)
	answered, failed := -1, 0
	value := strings.Repeat("v", size)
	for i := range batches {
		if err := d.Commit(put(d, fmt.Sprintf("%03d", i), value)); err != nil {
			if failed++; !errors.Is(err, errorfs.ErrInjected) {
				t.Errorf("n=%d: %v", n, err)
			}
			continue
		}
		if failed > 0 {
			t.Errorf("n=%d: batch %d was answered after a failed one", n, i)
		}
		answered = i
	}
	crash := vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))}
	if !sync { // what is with the kernel survives the process
		crash.UnsyncedDataPercent = 100
	}
	disk := mem.CrashClone(crash)
	if failed == 0 {
		d.Close()
	}
	again := open(t, disk, true)
	defer again.Close()
	for i := 0; i <= answered; i++ {
		if _, ok, err := again.Get(Topics, []byte(fmt.Sprintf("%03d", i))); !ok || err != nil {
			t.Errorf("n=%d: answered batch %d is lost: %v", n, i, err)
		}
	}
	return left.Load() < 0
}

// TestSmall holds the two figures that an idle server stands on: opening is quick and
// takes little memory. The limits are generous; the log line shows the real ones.
func TestSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	d, err := Open(Options{FS: vfs.Default, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	defer d.Close()
	if err := d.Commit(put(d, "a", "b")); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := (int64(after.Sys) - int64(before.Sys)) >> 10
	t.Logf("open %v, heap +%d KiB, from the system +%d KiB, goroutines %d", took, (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>10, grown, runtime.NumGoroutine())
	if took > 2*time.Second || grown > 32<<10 {
		t.Errorf("open took %v and %d KiB", took, grown)
	}
}

func BenchmarkCommitSource(b *testing.B) {
	d, err := Open(Options{FS: vfs.Default, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	defer run(b, d)()
	c := &counter{}
	answered := make(chan struct{}, 64)
	for range 64 {
		answered <- struct{}{}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		<-answered
		c.mu.Lock()
		c.n = i
		c.waiting = append(c.waiting, func(error) { answered <- struct{}{} })
		c.mu.Unlock()
		d.CommitSource(c)
	}
}

// TestFailedSyncEndsTheDatabase: under asynchronous flush commits are answered before they
// are durable, so when they can't become so there must be no more of them.
func TestFailedSyncEndsTheDatabase(t *testing.T) {
	var broken atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileSyncData {
			return errorfs.ErrInjected
		}
		return nil
	})
	d, err := Open(Options{FS: errorfs.Wrap(vfs.NewMem(), inject), Dir: "state", SyncInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if err := d.Commit(put(d, "k", "v")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := d.RunSync(ctx); !errors.Is(err, errorfs.ErrInjected) {
		t.Fatalf("the loop of the syncs ended with %v", err)
	}
	broken.Store(false)
	if err := d.Commit(put(d, "k", "w")); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("a commit after the failed sync was answered with %v", err)
	}
	if err := d.Close(); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("the close said %v", err)
	}
}

// A sync that is asked for, before a checkpoint for one, is no different: the next one would succeed
// without what the system has given up.
func TestFailedSyncIsNotTriedAgain(t *testing.T) {
	var broken atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileSyncData && broken.Swap(false) {
			return errorfs.ErrInjected
		}
		return nil
	})
	d, err := Open(Options{FS: errorfs.Wrap(vfs.NewMem(), inject), Dir: "state", SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(put(d, "k", "v")); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	for n := range 2 {
		if err := d.Sync(); !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("sync %d said %v", n, err)
		}
	}
	if err := d.Commit(put(d, "k", "w")); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("a commit after the failed sync was answered with %v", err)
	}
	if err := d.Close(); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("the close said %v", err)
	}
}

// TestAfterLog: under asynchronous flush a batch that ends what has its successor in the log
// is written after the log is durable, and not at all when it can't be.
func TestAfterLog(t *testing.T) {
	synced, broken := 0, false
	d, err := Open(Options{FS: vfs.NewMem(), Dir: "state", SyncInterval: time.Hour, BeforeSync: func() error {
		if broken {
			return errorfs.ErrInjected
		}
		synced++
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := synced
	if err := d.Commit(put(d, "k", "v")); err != nil || synced != before {
		t.Fatalf("%v, %d syncs for an ordinary commit", err, synced-before)
	}
	b := put(d, "k", "w")
	b.AfterLog()
	if err := d.Commit(b); err != nil || synced != before+1 {
		t.Fatalf("%v, %d syncs", err, synced-before)
	}
	broken = true
	b = put(d, "k", "x")
	b.AfterLog()
	if err := d.Commit(b); !errors.Is(err, errorfs.ErrInjected) {
		t.Fatal(err)
	}
	if v, _, _ := d.Get(Topics, []byte("k")); string(v) != "w" {
		t.Errorf("%s was written though the log is not durable", v)
	}
}

// patient is a source that always has to wait for something.
type patient struct {
	d     *DB
	asked int
}

func (p *patient) Collect(*Batch) func(error) {
	if p.asked++; p.asked < 1000 {
		p.d.CommitSourceWithin(p, time.Millisecond)
	}
	return nil
}

// A source that waits for something is not asked again and again when the database has failed:
// who ends the loop would do nothing else.
func TestFailedDatabaseAsksNobodyAgain(t *testing.T) {
	d := open(t, vfs.NewMem(), false)
	defer d.Close()
	why := errors.New("the disk is gone")
	_ = d.fail(why)
	p := &patient{d: d}
	d.CommitSource(p)
	if err := d.Run(t.Context()); !errors.Is(err, why) || p.asked != 1 {
		t.Errorf("asked %d times; the loop ended with %v", p.asked, err)
	}
}
