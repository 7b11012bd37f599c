package storage_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

// TestSyncsGatherSenders: senders that wait for their answers share a sync, all of them,
// and one that is alone waits for nobody. Time is simulated: a sync takes 2 ms.
func TestSyncsGatherSenders(t *testing.T) {
	const turns, syncTime = 100, 2 * time.Millisecond
	for _, senders := range []int{1, 2, 16} {
		synctest.Test(t, func(t *testing.T) {
			var syncs atomic.Int64
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) && strings.Contains(op.Path, "commitlog") {
					syncs.Add(1)
					time.Sleep(syncTime)
				}
				return nil
			}))
			s := storetest.Open(t, storage.Options{FS: fs, Flush: storage.Sync, CheckpointInterval: time.Hour})
			s.MustAppend(storetest.Message("orders", 0, 0, 100))
			before, began := syncs.Load(), time.Now()
			var all sync.WaitGroup
			for i := range senders {
				all.Go(func() {
					done := make(chan error, 1)
					for n := range turns {
						s.Engine.Append(storetest.Message("orders", 0, i*turns+n, 100), func(_ storage.Placed, err error) { done <- err })
						if err := <-done; err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if n := syncs.Load() - before; n > turns*9/5 { // without gathering it is two a turn; a few are for new files, and one that did not pay stops it for 32 turns
				t.Errorf("%d senders: %d syncs for %d turns", senders, n, turns)
			}
			if took := time.Since(began); took >= turns*syncTime*2 { // as without gathering; what it waits comes to the syncs
				t.Errorf("%d senders: %v for %d turns of a sync of %v", senders, took, turns, syncTime)
			}
		})
	}
}
