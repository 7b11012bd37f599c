package storage_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

func awaitCheckpoint(t *testing.T, s *storetest.Store) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.Checkpointed() < s.LogEnd(); {
		if time.Now().After(deadline) {
			t.Fatal("no checkpoint")
		}
		time.Sleep(time.Millisecond) // between looks at the condition
	}
}

func TestRetentionByAge(t *testing.T) {
	fs := vfs.NewMem()
	c := clock.New()
	o := storage.Options{FS: fs, Clock: c, LogSegmentSize: 16 << 10, QueueFileEntries: 16, IndexEntries: 60}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "old", 0, 200)
	fill(t, s, "orders", 0, 200)
	c.Advance(48 * time.Hour)
	fill(t, s, "orders", 200, 200)
	middle := s.LogMax()
	if err := s.DeleteExpired(); err != nil {
		t.Fatal(err)
	}
	if s.LogMin() != 0 {
		t.Fatalf("deleted up to %d before the age", s.LogMin())
	}
	c.Advance(25 * time.Hour)
	awaitCheckpoint(t, s)
	before := len(walk(t, fs, "store"))
	for min := int64(-1); min != s.LogMin(); { // ten files at a time
		min = s.LogMin()
		if err := s.DeleteExpired(); err != nil {
			t.Fatal(err)
		}
	}
	if s.LogMin() >= middle || len(walk(t, fs, "store")) > before-20 {
		t.Fatalf("log from %d, %d files of %d", s.LogMin(), len(walk(t, fs, "store")), before)
	}
	check := func(s *storetest.Store) {
		t.Helper()
		for queue := range int32(2) {
			min := s.MinOffset("orders", queue)
			if min == 0 || min > 100 || s.MaxOffset("orders", queue) != 200 {
				t.Fatalf("queue %d from %d to %d", queue, min, s.MaxOffset("orders", queue))
			}
			if got := readAll(t, s, "orders", queue, nil); int64(len(got)) != 200-min {
				t.Fatalf("read %d of %d", len(got), 200-min)
			}
			if r := s.Read(storage.ReadRequest{Topic: "orders", QueueID: queue, Offset: min - 1}); r.Status != storage.OffsetTooSmall || r.Next != min {
				t.Fatalf("read before the start: %v %d", r.Status, r.Next)
			}
			// All of it is gone, but the queue goes on where it was.
			if min, max := s.MinOffset("old", queue), s.MaxOffset("old", queue); min != 100 || max != 100 {
				t.Fatalf("old queue from %d to %d", min, max)
			}
		}
		if found, err := s.QueryKey("old", "k5", 5, 0, c.NowMilli()); err != nil || len(found) != 0 {
			t.Fatalf("found %v %v", found, err)
		}
	}
	check(s)
	s.CloseChecked()
	if s, err = storetest.TryOpen(t, o); err != nil {
		t.Fatal(err)
	}
	check(s)
	s.CloseChecked()
	// The queue keeps its end even when its files are lost and nothing is left in the log.
	if err := fs.RemoveAll("store/consumequeue"); err != nil {
		t.Fatal(err)
	}
	s = storetest.Open(t, o)
	check(s)
	if p := s.MustAppend(storetest.Message("old", 0, 1, 10)); p.QueueOffset != 100 {
		t.Fatalf("the old queue goes on at %d", p.QueueOffset)
	}
}

// R090, R091: percentages count only while less than the stated room is free; room that
// is not known is not scarce; with RefuseWhenFull nothing is dropped.
func TestWatermarks(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name       string
		free, all  uint64
		refuse     bool
		appends    bool
		keepsFiles bool
	}{
		{"unknown", 0, 0, false, true, true},
		{"large disk, 92 percent used, 21 GiB free", 21 * gib, 262 * gib, false, true, true},
		{"80 percent used", 20 * gib / 2, 50 * gib, false, true, true},
		{"88 percent used: the oldest file goes", 6 * gib, 50 * gib, false, true, false},
		{"92 percent used: and appends are refused", 4 * gib, 50 * gib, false, false, false},
		{"92 percent used, nothing is dropped", 4 * gib, 50 * gib, true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			var forced atomic.Int64
			s := storetest.Open(t, storage.Options{FS: fs, LogSegmentSize: 16 << 10,
				Retention: func() storage.Retention { return storage.Retention{RefuseWhenFull: c.refuse, CheckInterval: time.Hour} },
				Events: storage.Events{SegmentDeleted: func(_, _ int64, f bool) {
					if f {
						forced.Add(1)
					}
				}}})
			fill(t, s, "orders", 0, 200)
			awaitCheckpoint(t, s)
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: c.free, TotalBytes: c.all, UsedBytes: c.all - c.free})
			if err := s.DeleteExpired(); err != nil {
				t.Fatal(err)
			}
			if keeps := forced.Load() == 0 && s.LogMin() == 0; keeps != c.keepsFiles {
				t.Fatalf("log from %d, %d forced", s.LogMin(), forced.Load())
			}
			_, err := s.Append(storetest.Message("orders", 0, 200, 10))
			if c.appends != (err == nil) || (err != nil && !errors.Is(err, storage.ErrDiskFull)) {
				t.Fatalf("append: %v", err)
			}
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 40 * gib, TotalBytes: 50 * gib, UsedBytes: 10 * gib})
			if err := s.DeleteExpired(); err != nil {
				t.Fatal(err)
			}
			s.MustAppend(storetest.Message("orders", 0, 201, 10))
		})
	}
}

// TestDiskUsageIsThatOfDf: blocks that the file system reserves are neither used nor free.
func TestDiskUsageIsThatOfDf(t *testing.T) {
	fs := vfs.NewMem()
	s := storetest.Open(t, storage.Options{FS: fs})
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 20 << 30, UsedBytes: 80 << 30, TotalBytes: 250 << 30})
	if u := s.DiskUsage(); u.UsedPercent != 80 || u.Free != 20<<30 || u.Total != 250<<30 {
		t.Errorf("%+v", u)
	}
}
