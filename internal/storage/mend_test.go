package storage_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

const (
	entrySize    = 20
	smallEntries = 64 // of a file of storetest.Small
)

// entryPath is the file of queue 0 of orders that has an entry, and where.
func entryPath(at int) (path string, from int) {
	return fmt.Sprintf("store/consumequeue/orders/0/%020d", at/smallEntries*smallEntries*entrySize), at % smallEntries * entrySize
}

// damage changes an entry of queue 0 of orders in its file.
func damage(t *testing.T, fs vfs.FS, at int, change func(entry []byte)) {
	t.Helper()
	path, from := entryPath(at)
	data := get(t, fs, path)
	change(data[from : from+entrySize])
	put(t, fs, path, data)
}

// openTold is a store that tells of its warnings.
func openTold(t *testing.T, o storage.Options) (*storetest.Store, *warnings) {
	t.Helper()
	told := new(warnings)
	o.Log = slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return storetest.Open(t, o), told
}

const (
	putRight = "put right from the log"
	lost     = "leads to no record"
)

// Each byte of the place and of the size of an entry is damaged on disk, at the ends of its file
// and between, and all messages are there and in order, also when they are asked for their
// properties. It is told once, and the file is as it was.
func TestDamagedEntriesArePutRight(t *testing.T) {
	sound := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: sound})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 300)
	want := readAll(t, s, "orders", 0, nil)
	s.CloseChecked()
	every, err := filter.Compile(filter.KindSQL92, "never IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 1, 63, 64, 75, 100, 148, 149} {
		for b := range 12 {
			for _, flip := range []byte{0x01, 0x80} {
				for _, f := range []*filter.Expression{nil, every} {
					t.Run(fmt.Sprintf("entry %d byte %d xor %#x sql %t", at, b, flip, f != nil), func(t *testing.T) {
						fs := copyFS(t, sound, "store")
						damage(t, fs, at, func(entry []byte) { entry[b] ^= flip })
						s, told := openTold(t, storage.Options{FS: fs})
						for range 2 {
							if got := passing(t, s, f); !slices.Equal(got, want) {
								t.Fatalf("read %d of %d: %v", len(got), len(want), got)
							}
						}
						// What a file begins or ends with is seen at the start, which then reads the whole queue from the log.
						if n := strings.Count(told.String(), putRight); n > 1 || n == 0 && at != 0 && at%smallEntries != 0 && at != 149 && at != 63 {
							t.Errorf("told %q", told)
						}
						s.CloseChecked()
						path, _ := entryPath(at)
						if !slices.Equal(get(t, fs, path), get(t, sound, path)) {
							t.Error("the file is not as it was")
						}
					})
				}
			}
		}
	}
}

// passing reads queue 0 of orders to its end, whatever is removed on the way.
func passing(t *testing.T, s *storetest.Store, f *filter.Expression) (keys []string) {
	t.Helper()
	for at := s.MinOffset("orders", 0); ; {
		r := s.Read(storage.ReadRequest{Topic: "orders", Offset: at, Filter: f})
		for _, rec := range r.Records {
			keys = append(keys, keyOf(t, rec.Bytes))
		}
		if r.Status == storage.OffsetOverflowOne {
			return keys
		}
		if r.Next <= at {
			t.Fatalf("stuck at %d: %v", at, r.Status)
		}
		at = r.Next
		r.Release()
	}
}

// Many entries in a row are wiped out, or lead to the records of others: one search finds all, for
// as many readers as come.
func TestManyDamagedEntries(t *testing.T) {
	sound := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: sound})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 600)
	want := readAll(t, s, "orders", 0, nil)
	s.CloseChecked()
	for name, c := range map[string]struct{ first, end int }{"a piece": {70, 110}, "across files": {120, 200}, "one": {99, 100}} {
		for kind, change := range map[string]func(at int) func(entry []byte){
			"wiped": func(int) func([]byte) { return func(entry []byte) { clear(entry) } },
			"of others": func(at int) func([]byte) {
				path, from := entryPath(at - 40)
				other := get(t, sound, path)[from : from+entrySize]
				return func(entry []byte) { copy(entry, other) }
			},
		} {
			if kind == "wiped" && name == "across files" {
				continue // seen at the start
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				fs := copyFS(t, sound, "store")
				for at := c.first; at < c.end; at++ {
					damage(t, fs, at, change(at))
				}
				s, told := openTold(t, storage.Options{FS: fs})
				var readers sync.WaitGroup
				for range 8 {
					readers.Go(func() {
						if got := passing(t, s, nil); !slices.Equal(got, want) {
							t.Errorf("read %d of %d", len(got), len(want))
						}
					})
				}
				readers.Wait()
				if strings.Count(told.String(), putRight) != 1 || !strings.Contains(told.String(), fmt.Sprintf("entries=%d", c.end-c.first)) {
					t.Errorf("told %q", told)
				}
			})
		}
	}
}

// beginsLater is a stopped store whose oldest log files have gone, with the offset that queue 0 of
// orders begins at and the messages from there on.
func beginsLater(t *testing.T) (o storage.Options, first int, want []string) {
	t.Helper()
	c := clock.New()
	o = storage.Options{FS: vfs.NewMem(), Clock: c, LogSegmentSize: 16 << 10}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 60)
	c.Advance(48 * time.Hour)
	fill(t, s, "orders", 60, 200)
	c.Advance(25 * time.Hour)
	awaitCheckpoint(t, s)
	if err := s.DeleteExpired(); err != nil {
		t.Fatal(err)
	}
	first, want = int(s.MinOffset("orders", 0)), readAll(t, s, "orders", 0, nil)
	if first == 0 || len(want) < 90 {
		t.Fatalf("%d messages from %d on", len(want), first)
	}
	s.CloseChecked()
	return o, first, want
}

// An entry that says it lies before the log's beginning hides neither its message nor, where the
// search for the queue's beginning comes across it, those before it.
func TestDamagedEntryBeforeTheLog(t *testing.T) {
	o, first, want := beginsLater(t)
	for at := first + 1; at < 129; at++ {
		if at%smallEntries == 0 || at%smallEntries == smallEntries-1 {
			continue // seen at the start
		}
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			fs := copyFS(t, o.FS, "store")
			damage(t, fs, at, func(entry []byte) { binary.BigEndian.PutUint64(entry, 5) })
			o := o
			o.FS = fs
			s, told := openTold(t, o)
			if got := passing(t, s, nil); !slices.Equal(got, want) {
				t.Errorf("read %d of %d", len(got), len(want))
			}
			if strings.Count(told.String(), putRight) != 1 {
				t.Errorf("told %q", told)
			}
		})
	}
}

// A piece of a queue's file that was wiped out, before or behind the log's beginning, hides no message.
func TestWipedEntriesOfALogThatBeginsLater(t *testing.T) {
	o, _, want := beginsLater(t)
	for _, n := range []int{2, 12} {
		for from := 1; from+n < 130; from += 3 {
			if (from+n)/smallEntries != (from-1)/smallEntries {
				continue // seen at the start
			}
			fs := copyFS(t, o.FS, "store")
			for at := from; at < from+n; at++ {
				damage(t, fs, at, func(entry []byte) { clear(entry) })
			}
			o := o
			o.FS = fs
			s, _ := openTold(t, o)
			if got := passing(t, s, nil); !slices.Equal(got, want) {
				t.Errorf("%d from %d on: read %d of %d", n, from, len(got), len(want))
			}
		}
	}
}

// Entries that were written to the wrong queue's file lead to records of the same number of another
// topic: these are not delivered.
func TestEntriesOfAnotherTopic(t *testing.T) {
	fs := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 100)
	fill(t, s, "others", 0, 100)
	want := readAll(t, s, "orders", 0, nil)
	s.CloseChecked()
	path, _ := entryPath(0)
	other := get(t, fs, strings.Replace(path, "orders", "others", 1))
	for at := 10; at < 30; at++ {
		damage(t, fs, at, func(entry []byte) { copy(entry, other[at*entrySize:]) })
	}
	s, told := openTold(t, storage.Options{FS: fs})
	if got := passing(t, s, nil); !slices.Equal(got, want) {
		t.Errorf("read %d of %d: %v", len(got), len(want), got)
	}
	if strings.Count(told.String(), putRight) != 1 {
		t.Errorf("told %q", told)
	}
}

// What the log has lost as well is passed, and told and searched for once.
func TestEntryWithoutRecordIsPassed(t *testing.T) {
	fs := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	var placed []storage.Placed
	for i := range 5 {
		placed = append(placed, s.MustAppend(storetest.Message("orders", 0, i, 100)))
	}
	s.CloseChecked()
	tear(t, fs, 64<<10, placed[2].PhysicalOffset, make([]byte, 50))
	damage(t, fs, 2, func(entry []byte) { entry[11]++ })
	told := new(warnings)
	if s, err = storetest.TryOpen(t, storage.Options{FS: fs, Log: slog.New(slog.NewTextHandler(told, nil))}); err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	for range 3 {
		if got := passing(t, s, nil); len(got) != 4 {
			t.Errorf("read %v, want all but number 2", got)
		}
	}
	if strings.Count(told.String(), lost) != 1 {
		t.Errorf("told %q", told)
	}
}

// An entry that is found and can't be stored is not passed: the reader comes again.
func TestEntryThatCannotBePutRight(t *testing.T) {
	fs := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 100)
	s.CloseChecked()
	damage(t, fs, 20, func(entry []byte) { entry[6] ^= 0xff })
	var broken atomic.Bool
	faulty := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileWriteAt && strings.Contains(op.Path, "consumequeue") {
			return errors.New("the disk says no")
		}
		return nil
	}))
	s, told := openTold(t, storage.Options{FS: faulty})
	broken.Store(true)
	r := s.Read(storage.ReadRequest{Topic: "orders", Offset: 20})
	if !r.Failed(20) || !strings.Contains(told.String(), "the disk says no") {
		t.Fatalf("%v, next %d; told %q", r.Status, r.Next, told)
	}
	broken.Store(false)
	if got := readAll(t, s, "orders", 0, nil); len(got) != 50 {
		t.Errorf("read %d of 50", len(got))
	}
}

// A topic that is deleted while the record of a damaged entry of it is read is no matter.
func TestTopicIsDeletedBeforeItsEntryIsPutRight(t *testing.T) {
	fs := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 100)
	s.CloseChecked()
	damage(t, fs, 20, func(entry []byte) { entry[6] ^= 0xff })
	var armed atomic.Bool
	watched := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "commitlog") && armed.CompareAndSwap(true, false) {
			if err := s.DeleteTopic("orders"); err != nil {
				t.Error(err)
			}
		}
		return nil
	}))
	s, _ = openTold(t, storage.Options{FS: watched})
	armed.Store(true)
	if r := s.Read(storage.ReadRequest{Topic: "orders", Offset: 20}); len(r.Records) > 0 {
		t.Errorf("read %v", r)
	}
	if armed.Load() {
		t.Error("the log was not read")
	}
}

// What an entry that says that it lies before the log is for is not passed because the log could
// not be read.
func TestEntryThatCannotBeSearchedFor(t *testing.T) {
	fs, c := vfs.NewMem(), clock.New()
	o := storage.Options{FS: fs, Clock: c, LogSegmentSize: 16 << 10}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 60)
	c.Advance(48 * time.Hour)
	fill(t, s, "orders", 60, 200)
	c.Advance(25 * time.Hour)
	awaitCheckpoint(t, s)
	if err := s.DeleteExpired(); err != nil {
		t.Fatal(err)
	}
	want := readAll(t, s, "orders", 0, nil)
	s.CloseChecked()
	damage(t, fs, 100, func(entry []byte) { binary.BigEndian.PutUint64(entry, 5) })
	var broken atomic.Bool
	o.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "commitlog") {
			return errors.New("the disk says no")
		}
		return nil
	}))
	s, told := openTold(t, o)
	broken.Store(true)
	every, err := filter.Compile(filter.KindSQL92, "never IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*filter.Expression{nil, every} {
		r := s.Read(storage.ReadRequest{Topic: "orders", Offset: 100, Filter: f})
		if !r.Failed(100) || !strings.Contains(told.String(), "the disk says no") {
			t.Errorf("%v, next %d; told %q", r.Status, r.Next, told)
		}
	}
	broken.Store(false)
	if got := passing(t, s, nil); !slices.Equal(got, want) {
		t.Errorf("read %d of %d", len(got), len(want))
	}
}

func keyOf(t *testing.T, record []byte) string {
	t.Helper()
	var m message.Message
	if _, err := message.DecodeStored(record, &m); err != nil {
		t.Error(err)
	}
	return strings.Clone(m.Properties.Value(message.PropertyUniqKey))
}
