package storage_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// faultRun is one life of a store under a fault: two opens, appends over several log and
// queue files, a deletion, reads. What was answered with success is returned.
func faultRun(t *testing.T, fs vfs.FS, flush storage.FlushPolicy) map[string]storage.Placed {
	got := map[string]storage.Placed{}
	n := 0
	for range 2 {
		s, err := storetest.TryOpen(t, storage.Options{FS: fs, Flush: flush, LogSegmentSize: 8 << 10, QueueFileEntries: 16,
			CheckpointInterval: time.Millisecond, FlushInterval: time.Millisecond})
		if err != nil {
			return got
		}
		for range 60 {
			m := storetest.Message("orders", int32(n%2), n, 300)
			n++
			p, err := s.Append(m)
			if err == nil {
				got["orders "+m.Properties.Value(message.PropertyUniqKey)] = p
			}
		}
		r := s.Read(storage.ReadRequest{Topic: "orders", Offset: 0})
		r.Release()
		_, _ = s.QueryKey("orders", "k1", 5, 0, time.Now().UnixMilli()+1000)
		_ = s.StopClose()
	}
	return got
}

// The n-th file operation fails, for every n until a run meets no fault any more: no call
// hangs, and the store that is opened afterwards is sound and has all that was answered
// with success, at the offset that was answered.
func TestEveryFault(t *testing.T) {
	for name, flush := range map[string]storage.FlushPolicy{"async": storage.Async, "sync": storage.Sync} {
		t.Run(name, func(t *testing.T) {
			step := 1
			if testing.Short() {
				step = 7
			}
			for n := 0; ; n += step {
				fs := vfs.NewMem()
				var count, hit atomic.Int64
				faulty := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if count.Add(1)-1 == int64(n) {
						hit.Store(1 + int64(op.Kind))
						return errorfs.ErrInjected
					}
					return nil
				}))
				got := faultRun(t, faulty, flush)
				s, err := storetest.TryOpen(t, storage.Options{FS: fs, LogSegmentSize: 8 << 10, QueueFileEntries: 16})
				if err != nil {
					t.Fatalf("fault %d (kind %d): %v", n, hit.Load()-1, err)
				}
				if err := s.Check(); err != nil {
					t.Fatalf("fault %d (kind %d): %v", n, hit.Load()-1, err)
				}
				verify(t, s, got)
				gapFree(t, s)
				s.CloseChecked()
				if t.Failed() {
					t.Fatalf("fault %d (kind %d)", n, hit.Load()-1)
				}
				if hit.Load() == 0 {
					t.Logf("%d file operations", n)
					return
				}
			}
		})
	}
}

// A disk without room: appends are answered with ErrDiskFull, nothing that was answered
// is lost, offsets stay gap-free, what was refused does not come back, and appends go on
// by themselves when there is room.
func TestNoRoomOnTheDisk(t *testing.T) {
	fs := vfs.NewMem()
	var noRoom atomic.Bool
	faulty := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if noRoom.Load() && (op.Kind == errorfs.OpFileWriteAt || op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite) {
			return syscall.ENOSPC
		}
		return nil
	}))
	o := storage.Options{FS: faulty, LogSegmentSize: 8 << 10}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 20)
	for round := range 3 {
		noRoom.Store(true)
		for i := range 5 {
			if _, err := s.Append(storetest.Message("orders", 0, 1000+i, 300)); !errors.Is(err, storage.ErrDiskFull) {
				t.Fatalf("append without room: %v", err)
			}
		}
		noRoom.Store(false)
		first := 20 + round*10
		deadline := time.Now().Add(20 * time.Second)
		for {
			_, err := s.Append(storetest.Message("orders", int32(first%2), first, 300))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("appends do not go on by themselves: %v", err)
			}
			time.Sleep(10 * time.Millisecond) // between tries
		}
		fill(t, s, "orders", first+1, 9)
	}
	for queue := range int32(2) {
		if got := readAll(t, s, "orders", queue, nil); len(got) != 25 {
			t.Fatalf("queue %d has %d, want 25", queue, len(got))
		}
	}
	s.CloseChecked()
	s = storetest.Open(t, o)
	gapFree(t, s)
}

// A stop while the disk has no room writes no queues and no index: they are in the log, and the
// next start needs what is left.
func TestStopWithoutRoom(t *testing.T) {
	fs := vfs.NewMem()
	var full error
	var writes atomic.Int64
	o := storage.Options{LogSegmentSize: 8 << 10, Full: func() error { return full }, CheckpointInterval: time.Hour, FlushInterval: time.Hour,
		FS: errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData {
				writes.Add(1)
			}
			return nil
		}))}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 20)
	full = errors.New("the disk is full")
	before := writes.Load()
	if err := s.StopClose(); err != nil || writes.Load() != before {
		t.Errorf("the stop wrote %d times: %v", writes.Load()-before, err)
	}
	full = nil
	s = storetest.Open(t, o)
	for queue := range int32(2) {
		if got := readAll(t, s, "orders", queue, nil); len(got) != 10 {
			t.Errorf("queue %d has %d of 10", queue, len(got))
		}
	}
	gapFree(t, s)
}

// A failed sync under synchronous flush ends the log: nothing is answered with success
// after it, and the next start reads what is really there.
func TestFailedSyncEndsTheLog(t *testing.T) {
	fs := vfs.NewMem()
	var fail atomic.Bool
	faulty := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fail.Load() && op.Kind == errorfs.OpFileSyncData {
			return errorfs.ErrInjected
		}
		return nil
	}))
	s, err := storetest.TryOpen(t, storage.Options{FS: faulty, Flush: storage.Sync, CheckpointInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 20)
	fail.Store(true)
	if _, err := s.Append(storetest.Message("orders", 0, 20, 300)); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("append with a failing sync: %v", err)
	}
	fail.Store(false)
	if _, err := s.Append(storetest.Message("orders", 0, 21, 300)); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("append after a failed sync: %v", err)
	}
	if err := s.StopClose(); err == nil {
		t.Fatal("a failed log closes without an error")
	}
	s = storetest.Open(t, storage.Options{FS: fs})
	if got := len(readAll(t, s, "orders", 0, nil)) + len(readAll(t, s, "orders", 1, nil)); got < 20 || got > 21 {
		t.Fatalf("%d records", got)
	}
}

// A place of the log can't be read, and a block around it can't be read whole: its neighbours
// are read by themselves, and the reader is told of that place alone.
func TestUnreadablePlaceHidesNoNeighbours(t *testing.T) {
	const queues, each = 8, 40
	var bad atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if bad.Load() && op.Kind == errorfs.OpFileReadAt && op.Offset == 0 && strings.HasSuffix(op.Path, "commitlog/00000000000000065536") {
			return errorfs.ErrInjected
		}
		return nil
	}))
	s := storetest.Open(t, storage.Options{FS: fs, LogSegmentSize: 64 << 10, MaxOpenBytes: 4 << 10})
	for i := range queues * each {
		s.MustAppend(storetest.Message("t", int32(i%queues), i, 800))
	}
	s.AwaitDispatch(s.LogEnd())
	bad.Store(true)
	defer bad.Store(false)
	read, unread := 0, 0
	for q := range int32(queues) {
		for at := int64(0); at < each; {
			r := s.Read(storage.ReadRequest{Topic: "t", QueueID: q, Offset: at})
			if read += len(r.Records); r.Status != storage.Found {
				if r.Status != storage.OffsetFoundNull || r.Next != at {
					t.Fatalf("%v at %d of queue %d, next is %d", r.Status, at, q, r.Next)
				}
				unread++
				r.Next++
			}
			at = r.Next
			r.Release()
		}
	}
	if read != queues*each-1 || unread != 1 {
		t.Errorf("read %d of %d records, and %d could not be read, which is true of one", read, queues*each, unread)
	}
}
