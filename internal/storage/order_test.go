package storage_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

// A process that was killed leaves records that the kernel has and the disk has not. What
// recovery tells of them must be durable by then: whoever is told deletes the state that
// the record was born from, and a power cut during the recovery would leave neither (P6).
func TestRecoveryTellsOfWhatIsDurable(t *testing.T) {
	for name, flush := range map[string]storage.FlushPolicy{"async": storage.Async, "sync": storage.Sync} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			s, err := storetest.TryOpen(t, storage.Options{FS: fs, CheckpointInterval: time.Hour, FlushInterval: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				s.MustAppend(storetest.Message("t", 0, i, 100))
			}
			s.Abandon()
			var clone *vfs.MemFS
			told := func([]storage.Dispatched) {
				clone = fs.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))})
			}
			storetest.Open(t, storage.Options{FS: fs, Flush: flush, OnDispatch: told, CheckpointInterval: time.Hour})
			if clone == nil {
				t.Fatal("recovery told of nothing")
			}
			after := storetest.Open(t, storage.Options{FS: clone})
			if end := after.MaxOffset("t", 0); end != 3 {
				t.Errorf("after a power cut %d of the 3 records are there that recovery told of", end)
			}
		})
	}
}

// The key index is never ahead of the log: after a power cut the log gives the same
// offsets out again, and the index takes a record for one that it has already.
func TestIndexIsNotAheadOfTheLog(t *testing.T) {
	fs := vfs.NewCrashableMem()
	var s *storetest.Store
	var once sync.Once
	var ready atomic.Bool
	settle := func() error { // between the sync of the log and that of the index
		if !ready.Load() {
			return nil // a checkpoint of the start
		}
		once.Do(func() {
			for i := range 5 {
				s.MustAppend(storetest.Message("t", 0, 100+i, 100))
			}
			s.AwaitDispatch(s.LogEnd())
		})
		return nil
	}
	var err error
	s, err = storetest.TryOpen(t, storage.Options{FS: fs, FlushInterval: time.Hour, CheckpointInterval: 300 * time.Millisecond, Settle: settle})
	if err != nil {
		t.Fatal(err)
	}
	ready.Store(true)
	s.MustAppend(storetest.Message("t", 0, 0, 100))
	for deadline := time.Now().Add(30 * time.Second); s.Checkpointed() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no checkpoint")
		}
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))})
	s.Abandon()

	after := storetest.Open(t, storage.Options{FS: clone}) // and checked when the test ends
	after.MustAppend(storetest.Message("t", 0, 200, 100))
	after.AwaitDispatch(after.LogEnd())
	if found, err := after.QueryKey("t", "k200", 1, 0, math.MaxInt64/4); err != nil || len(found) != 1 {
		t.Errorf("a record written after the power cut is not found by its key: %v %v", found, err)
	}
}

// Topics are deleted while others get messages. Whoever deals with what was written does so
// in the log's order: a deletion, which waits until everything is dispatched, must not pass
// what the dispatcher has in hand.
func TestDeletionsKeepTheOrderOfOthers(t *testing.T) {
	var holes atomic.Int64
	last := map[int32]int64{} // of dispatch, by queue
	told := func(all []storage.Dispatched) {
		for _, d := range all {
			if d.Topic != "t" {
				continue
			}
			if next, ok := last[d.QueueID]; ok && d.QueueOffset != next {
				holes.Add(1)
			}
			last[d.QueueID] = d.QueueOffset + 1
		}
	}
	s := storetest.Open(t, storage.Options{FS: vfs.NewMem(), OnDispatch: told})
	const senders, each = 4, 5000
	var sending sync.WaitGroup
	var ended atomic.Bool
	for q := range int32(senders) {
		sending.Go(func() {
			for i := range each {
				s.MustAppend(storetest.Message("t", q, i, 100))
			}
		})
	}
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for !ended.Load() {
			if err := s.DeleteTopic("gone"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	sending.Wait()
	ended.Store(true)
	deleting.Wait()
	s.AwaitDispatch(s.LogEnd())
	if n := holes.Load(); n > 0 {
		t.Errorf("%d records were dispatched out of their order", n)
	}
	for q := range int32(senders) {
		got := 0
		for at := int64(0); at < s.MaxOffset("t", q); {
			r := s.Read(storage.ReadRequest{Topic: "t", QueueID: q, Offset: at, MaxMessages: 1000})
			got += len(r.Records)
			next := r.Next
			r.Release()
			if next <= at {
				break
			}
			at = next
		}
		if got != each {
			t.Errorf("queue %d has %d of %d messages", q, got, each)
		}
	}
}
