package broker

import (
	"errors"
	"io"
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
				mem := vfs.NewMem()
				b, err := Open(smallOptions(mem))
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Topics.Put(topic.New("orders")); err != nil {
					t.Fatal(err)
				}
				// No close: the process was killed, there is something to recover.
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
				err = tryOpen(t, n, faulty)
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("fault %d: %q", n, err)
				}
				if errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "make room and start again") {
					t.Errorf("fault %d: %v", n, err)
				}
				again, err := Open(smallOptions(unlocked{mem}))
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
