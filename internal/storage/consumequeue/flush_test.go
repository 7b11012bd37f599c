package consumequeue

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage/segment"
)

// A disk that takes no writes for long: a queue waits once for the next flush, however
// often it was tried and whatever came meanwhile.
func TestFailedFlushIsQueuedOnce(t *testing.T) {
	failing := true
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing {
			return errorfs.ErrInjected
		}
		return nil
	}))
	s := Open(Options{Pool: segment.NewPool(fs, 8), Dir: "consumequeue", FileEntries: 64})
	q := s.Make("t", 0)
	for i := range int64(10) {
		if err := q.Append(i, Entry{Physical: i * 100, Size: 100}); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(); err == nil {
			t.Fatal("the disk takes writes")
		}
	}
	if n := len(s.dirty.queues); n != 1 {
		t.Errorf("the queue waits %d times", n)
	}
	failing = false
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := q.Entry(9); !ok || err != nil || e.Physical != 900 {
		t.Errorf("the last entry reads %+v %t %v", e, ok, err)
	}
}
