package storage_test

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// walk lists the files below dir.
func walk(t *testing.T, fs vfs.FS, dir string) (files []string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		path := fs.PathJoin(dir, n)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			files = append(files, walk(t, fs, path)...)
		} else {
			files = append(files, path)
		}
	}
	return files
}

// copyFS is a second file system with the same files.
func copyFS(t *testing.T, from vfs.FS, dir string) *vfs.MemFS {
	t.Helper()
	to := vfs.NewMem()
	for _, path := range walk(t, from, dir) {
		if err := to.MkdirAll(to.PathDir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, to, path, get(t, from, path))
	}
	return to
}

func get(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// R094, R095: each derived file deleted, cut and zeroed in turn, after a clean stop and
// after a crash: the start succeeds and the content is complete, early and late keys
// included.
func TestDerivedFilesAreRebuilt(t *testing.T) {
	fs := vfs.NewMem()
	const total = 1200
	o := storage.Options{FS: fs, LogSegmentSize: 64 << 10}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, total)
	s.CloseChecked()
	var derived []string
	for _, path := range walk(t, fs, "store") {
		if !strings.Contains(path, "commitlog") {
			derived = append(derived, path)
		}
	}
	if len(derived) < 15 {
		t.Fatalf("too few files to damage: %v", derived)
	}
	damages := map[string]func(fs vfs.FS, path string){
		"deleted": func(fs vfs.FS, path string) {
			if err := fs.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"cut in half": func(fs vfs.FS, path string) { b := get(t, fs, path); put(t, fs, path, b[:len(b)/2]) },
		"emptied":     func(fs vfs.FS, path string) { put(t, fs, path, nil) },
		"zeroed":      func(fs vfs.FS, path string) { put(t, fs, path, make([]byte, len(get(t, fs, path)))) },
	}
	for name, damage := range damages {
		for _, path := range derived {
			for _, crashed := range []bool{false, true} {
				fs := copyFS(t, fs, "store")
				damage(fs, path)
				if crashed {
					put(t, fs, "store/abort", []byte("1"))
				}
				t.Run(fmt.Sprintf("%s %s crashed=%t", path, name, crashed), func(t *testing.T) {
					s := storetest.Open(t, storage.Options{FS: fs, LogSegmentSize: 64 << 10})
					for queue := range int32(2) {
						if got := readAll(t, s, "orders", queue, nil); len(got) != total/2 {
							t.Fatalf("queue %d has %d of %d", queue, len(got), total/2)
						}
					}
					for _, i := range []int{0, 1, 333, total - 2, total - 1} {
						if found, err := s.QueryKey("orders", fmt.Sprintf("k%d", i), 5, 0, math.MaxInt64/4); err != nil || len(found) != 1 {
							t.Fatalf("key %d: %v %v", i, found, err)
						}
					}
					fill(t, s, "orders", total, 10)
				})
			}
		}
	}
}

// tear overwrites the log behind off with what a torn write leaves: half of what was
// there, then junk.
func tear(t *testing.T, fs vfs.FS, segment int64, off int64, data []byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(fmt.Sprintf("store/commitlog/%020d", off-off%segment), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, off%segment); err != nil {
		t.Fatal(err)
	}
}

// Two cuts in a row with records of equal size: what lay behind the first cut must not
// come back behind the second. Without the zeroing, the record that is appended after the
// first cut would end exactly where an old record begins.
func TestTwoCutsInARow(t *testing.T) {
	const segment = 64 << 10
	fs := vfs.NewCrashableMem()
	o := storage.Options{FS: fs, LogSegmentSize: segment, CheckpointInterval: 1 << 40}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	var placed []storage.Placed
	for i := range 10 {
		placed = append(placed, s.MustAppend(storetest.Message("orders", 0, i, 200)))
	}
	for i := range placed[1:] {
		if placed[i].Size != placed[0].Size {
			t.Fatal("the records are not of equal size")
		}
	}
	fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: seed(t)})
	s.Abandon()

	// First cut: record 5 is torn, 6 to 9 are whole behind it.
	tear(t, fs, segment, placed[5].PhysicalOffset+20, make([]byte, 40))
	o.FS = fs
	var told warnings
	o.Log = slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if s, err = storetest.TryOpen(t, o); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("at=%d ", placed[5].PhysicalOffset); strings.Count(told.String(), "was cut") != 1 || !strings.Contains(told.String(), want) {
		t.Errorf("told %q, want %s", told.String(), want)
	}
	o.Log = nil
	if got := readAll(t, s, "orders", 0, nil); len(got) != 5 {
		t.Fatalf("%d records after the first cut, want 5", len(got))
	}
	again := s.MustAppend(storetest.Message("orders", 0, 5, 200))
	if again.PhysicalOffset != placed[5].PhysicalOffset || again.QueueOffset != 5 || again.Size != placed[5].Size {
		t.Fatalf("placed at %+v, want the place of %+v", again, placed[5])
	}
	fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: seed(t)})
	s.Abandon()

	// Second start: the log ends behind the new record 5.
	o.FS = fs
	s2 := storetest.Open(t, o)
	if got := readAll(t, s2, "orders", 0, nil); len(got) != 6 {
		t.Fatalf("%d records after the second crash, want 6", len(got))
	}
	if end := again.PhysicalOffset + int64(again.Size); s2.LogMax() != end {
		t.Fatalf("the log ends at %d, want %d", s2.LogMax(), end)
	}
}

// warnings is a log that the engine's loops still write to while it is read.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// The last log file may have been left shorter, as a copy or a crash while it was made
// leaves it; any other odd size stops the start with a sentence that names the file.
func TestOddSizesOfLogFiles(t *testing.T) {
	const segment = 32 << 10
	fs := vfs.NewMem()
	s, err := storetest.TryOpen(t, storage.Options{FS: fs, LogSegmentSize: segment})
	if err != nil {
		t.Fatal(err)
	}
	last := fill(t, s, "orders", 0, 200)
	s.CloseChecked()
	lastFile := fmt.Sprintf("store/commitlog/%020d", last.PhysicalOffset-last.PhysicalOffset%segment)
	next := fmt.Sprintf("store/commitlog/%020d", last.PhysicalOffset-last.PhysicalOffset%segment+segment)
	used := int(last.PhysicalOffset%segment) + int(last.Size)
	for name, c := range map[string]struct {
		damage func(fs vfs.FS)
		opens  bool
	}{
		"last cut behind its records": {func(fs vfs.FS) { put(t, fs, lastFile, get(t, fs, lastFile)[:used]) }, true},
		"an empty file behind":        {func(fs vfs.FS) { put(t, fs, next, nil) }, true},
		"a zero file behind":          {func(fs vfs.FS) { put(t, fs, next, make([]byte, segment)) }, true},
		"first cut":                   {func(fs vfs.FS) { put(t, fs, "store/commitlog/00000000000000000000", make([]byte, 100)) }, false},
		"last too long":               {func(fs vfs.FS) { put(t, fs, lastFile, append(get(t, fs, lastFile), 0)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			fs := copyFS(t, fs, "store")
			c.damage(fs)
			s, err := storetest.TryOpen(t, storage.Options{FS: fs, LogSegmentSize: segment})
			if !c.opens {
				if err == nil || !strings.Contains(err.Error(), "commitlog") {
					t.Fatalf("opened with %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := len(readAll(t, s, "orders", 0, nil)) + len(readAll(t, s, "orders", 1, nil)); got != 200 {
				t.Fatalf("%d records of 200", got)
			}
			fill(t, s, "orders", 200, 100)
			s.CloseChecked()
		})
	}
}

// P8: records of a topic that are older than its birth do not come back, neither when the
// topic is deleted and made again, nor after a crash, nor when its queues are rebuilt.
// R099, R100: deleted stays deleted, and a new topic of the name begins at 0.
func TestBirth(t *testing.T) {
	fs := vfs.NewCrashableMem()
	birth := map[string]int64{}
	o := storage.Options{FS: fs, Birth: func(topic string) int64 { return birth[topic] }}
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 100)
	fill(t, s, "other", 0, 100)
	birth["orders"] = math.MaxInt64
	if err := s.DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	if names := s.Topics(); len(names) != 1 || names[0] != "other" {
		t.Fatalf("topics after the deletion: %v", names)
	}
	if _, err := fs.Stat("store/consumequeue/orders"); err == nil {
		t.Fatal("the folder is still there")
	}
	birth["orders"] = s.LogMax()
	fill(t, s, "orders", 0, 10)
	check := func(s *storetest.Store) {
		t.Helper()
		for queue := range int32(2) {
			if got := readAll(t, s, "orders", queue, nil); len(got) != 5 || s.MinOffset("orders", queue) != 0 {
				t.Fatalf("queue %d has %d records from %d", queue, len(got), s.MinOffset("orders", queue))
			}
		}
		if found, err := s.QueryKey("orders", "k50", 5, 0, math.MaxInt64/4); err != nil || len(found) != 0 {
			t.Fatalf("a key of the old topic finds %v %v", found, err)
		}
	}
	check(s)
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: seed(t)})
	s.CloseChecked()
	o.FS = clone
	s2, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	check(s2)
	s2.CloseChecked()
	if err := clone.RemoveAll("store/consumequeue"); err != nil {
		t.Fatal(err)
	}
	s3 := storetest.Open(t, o)
	check(s3)
}

// Batches (code 320) get consecutive queue offsets and lie in one file, whatever else is
// appended.
func TestBatchesStayTogether(t *testing.T) {
	const segment = 16 << 10
	s := storetest.Open(t, storage.Options{LogSegmentSize: segment})
	for round := range 40 {
		fill(t, s, "orders", round*3, 3)
		var ms []*message.Message
		for i := range 7 {
			ms = append(ms, storetest.Message("orders", 1, 10_000+round*7+i, 400))
		}
		c := make(chan []storage.Placed, 1)
		s.AppendBatch(ms, func(p []storage.Placed, err error) {
			if err != nil {
				t.Error(err)
			}
			c <- p
		})
		p := <-c
		if len(p) != 7 {
			t.Fatalf("%d places", len(p))
		}
		for i := range p {
			if p[i].QueueOffset != p[0].QueueOffset+int64(i) || p[i].PhysicalOffset/segment != p[0].PhysicalOffset/segment {
				t.Fatalf("places %+v", p)
			}
		}
	}
}
