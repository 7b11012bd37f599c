package broker

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// unlocked lets a second database of the same process have the folder.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func smallOptions(fs vfs.FS) Options {
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	sc.MappedFileSizeCommitLog, sc.MappedFileSizeConsume, sc.MaxMessageSize = 1<<20, 20*256, 32<<10
	return Options{FS: fs, Dir: "data", Broker: config.NewLive(bc), StoreConfig: config.NewLive(sc),
		StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"), Tune: Tuning{IndexSlots: 100, IndexEntries: 1000, MaxWaiting: 1000}}
}

// withOrders is an open broker that has a topic.
func withOrders(t *testing.T, fs vfs.FS) *Broker {
	t.Helper()
	b, err := Open(smallOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Topics.Put(topic.New("orders")); err != nil {
		t.Fatal(err)
	}
	return b
}

// tryOpen opens and closes a broker whose loops never run, and fails if that hangs.
func tryOpen(t *testing.T, n int64, fs vfs.FS) error {
	t.Helper()
	opened := make(chan error, 1)
	go func() {
		b, err := Open(smallOptions(fs))
		if err == nil {
			_ = b.Close() // fails as it must
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("fault %d: the start hangs", n)
		return nil
	}
}

// A start whose n-th write fails, for every n, and all later ones with it: it ends, with one
// line that says why, and the next start finds everything.
func TestStartMeetsEveryFault(t *testing.T) {
	for name, fault := range map[string]error{"no room": syscall.ENOSPC, "broken disk": errorfs.ErrInjected} {
		t.Run(name, func(t *testing.T) {
			step := int64(1)
			if testing.Short() {
				step = 5
			}
			for n := int64(0); ; n += step {
				mem := vfs.NewCrashableMem()
				withOrders(t, mem) // no close: the process was killed, there is something to recover
				var count atomic.Int64
				faulty := errorfs.Wrap(unlocked{mem}, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpRemove || op.Kind == errorfs.OpFileClose {
						return nil
					}
					if count.Add(1) <= n {
						return nil
					}
					return fault
				}))
				err := tryOpen(t, n, faulty)
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("fault %d: %q", n, err)
				}
				if errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "make room and start again") {
					t.Errorf("fault %d: %v", n, err)
				}
				// What such a start has left running would end with its process.
				left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
				again, err := Open(smallOptions(unlocked{left}))
				if err != nil {
					t.Fatalf("fault %d: %v", n, err)
				}
				if _, ok := again.Topics.Get("orders"); !ok {
					t.Errorf("fault %d: the topic is gone", n)
				}
				if err := again.Check(); err != nil {
					t.Errorf("fault %d: %v", n, err)
				}
				if err := again.Close(); err != nil {
					t.Errorf("fault %d: %v", n, err)
				}
				if t.Failed() {
					return
				}
				if count.Load() <= n {
					t.Logf("%d writes", count.Load())
					return
				}
			}
		})
	}
}

// stored is a broker's folder after a clean stop, with a topic, a group and an offset.
func stored(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	b := withOrders(t, mem)
	if _, err := b.Groups.GetOrCreate("g"); err != nil {
		t.Fatal(err)
	}
	loops := lifecycle.New(slog.New(slog.DiscardHandler))
	for _, l := range b.Loops() {
		loops.Go(l.Name, l.Run)
	}
	for range 5 {
		sent := make(chan error, 1)
		b.Publish.Publish(&message.Message{Topic: "orders", Body: []byte("x"), BornTimestamp: 1,
			BornHost: netip.MustParseAddrPort("127.0.0.1:1"), Properties: "UNIQ_KEY\x01k\x02"}, func(_ storage.Placed, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Offsets.Commit("g", "orders", 0, 3); err != nil {
		t.Fatal(err)
	}
	if err := loops.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return mem
}

func checkStored(t *testing.T, fs vfs.FS) {
	t.Helper()
	b, err := Open(smallOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Topics.Get("orders"); !ok {
		t.Error("the topic is gone")
	}
	if _, ok := b.Groups.Get("g"); !ok {
		t.Error("the group is gone")
	}
	if off, ok := b.Offsets.Query("g", "orders", 0); off != 3 || !ok {
		t.Errorf("the offset is %d %v, want 3", off, ok)
	}
	if end := b.Store.MaxOffset("orders", 0); end != 5 {
		t.Errorf("the queue ends at %d, want 5", end)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// What the line about a damaged state database tells to do is right: without its folder the
// tables come from the files in config/.
func TestStateIsRebuiltFromTheExports(t *testing.T) {
	mem := stored(t)
	if err := mem.RemoveAll("data/state"); err != nil {
		t.Fatal(err)
	}
	checkStored(t, mem)
}

// A log of the state that lost its end to damage does not lose what the exports know.
func TestDamagedStateLogIsMadeGood(t *testing.T) {
	mem := stored(t)
	names, err := mem.List("data/state")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		path := "data/state/" + name
		f, err := mem.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil || len(text) == 0 {
			t.Fatal(len(text), err)
		}
		text[len(text)/3] ^= 1
		w, err := mem.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	checkStored(t, mem)
}
