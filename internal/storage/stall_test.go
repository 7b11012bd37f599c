package storage_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

// R088: a disk that stands still delays appends and refuses none, until the open buffers
// are full for as long as Append may wait; then the answer says busy, and when the disk
// moves again everything that was taken is there.
func TestStalledDisk(t *testing.T) {
	var gate sync.RWMutex // held: the disk stands still
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt {
			gate.RLock()
			defer gate.RUnlock()
		}
		return nil
	}))
	s := storetest.Open(t, storage.Options{FS: fs, MaxOpenBytes: 100 << 10, BusyAfter: 50 * time.Millisecond, CheckpointInterval: time.Hour})
	fill(t, s, "orders", 0, 10)
	gate.Lock()
	answers := make(chan error, 1000)
	taken, busy := 0, 0
	for i := 10; busy == 0; i++ {
		refused := make(chan error, 1)
		s.Engine.Append(storetest.Message("orders", 0, i, 1000), func(_ storage.Placed, err error) {
			answers <- err
			refused <- err
		})
		select {
		case err := <-refused:
			if !errors.Is(err, storage.ErrBusy) {
				t.Fatalf("append %d: %v", i, err)
			}
			<-answers
			busy++
		default:
			taken++
		}
	}
	if taken < 80 {
		t.Fatalf("busy after %d KiB, there is room for 100", taken)
	}
	gate.Unlock()
	for range taken {
		if err := <-answers; err != nil {
			t.Fatalf("what was taken is refused: %v", err)
		}
	}
	last := s.MustAppend(storetest.Message("orders", 0, 0, 1000))
	if last.QueueOffset != int64(5+taken) {
		t.Fatalf("offset %d, want %d", last.QueueOffset, 5+taken)
	}
	s.AwaitDispatch(last.PhysicalOffset + int64(last.Size))
}
