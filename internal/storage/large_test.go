package storage_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

func env(name string, standard int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return standard
}

// R101: what a start reads depends on the tail that no checkpoint covers, never on how large
// the log is or how many entries its queues have. TestStartOfALargeStore is the long form.
func TestStartReadsTheTailOnly(t *testing.T) {
	const queues = 100
	reads := func(messages int) (clean, killed int64) {
		var n atomic.Int64
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt {
				n.Add(1)
			}
			return nil
		}))
		var found storage.Recovery
		o := storage.Options{FS: fs, LogSegmentSize: 64 << 10, QueueFileEntries: 1000, IndexEntries: 50_000,
			Events: storage.Events{Recovered: func(r storage.Recovery) { found = r }}}
		open := func() (*storetest.Store, int64) {
			before := n.Load()
			s, err := storetest.TryOpen(t, o)
			if err != nil {
				t.Fatal(err)
			}
			return s, n.Load() - before
		}
		s, _ := open()
		for i := range messages {
			s.MustAppend(storetest.Message("orders", int32(i%queues), i, 200))
		}
		awaitCheckpoint(t, s)
		s.Abandon()
		s, killed = open()
		if found.Clean || found.Records > 100 {
			t.Errorf("a start after a kill has read %d of %d records", found.Records, messages)
		}
		s.CloseChecked()
		s, clean = open()
		if !found.Clean || found.Records > 0 {
			t.Errorf("a start after a clean stop has read %d of %d records", found.Records, messages)
		}
		s.CloseChecked()
		return clean, killed
	}
	clean, killed := reads(1000)
	cleanLarge, killedLarge := reads(8000)
	t.Logf("reads of a start: clean %d and %d, killed %d and %d", clean, cleanLarge, killed, killedLarge)
	if cleanLarge > clean+clean/10 || killedLarge > killed+killed/10 {
		t.Errorf("eight times the log: %d reads instead of %d, %d instead of %d after a kill", cleanLarge, clean, killedLarge, killed)
	}
}

// R101, the long form: STORE_MIB of log in STORE_QUEUES queues on the real disk are open in
// 10 s after a clean stop and in 30 s after a kill. make large: 20 GiB, 20,000 queues.
func TestStartOfALargeStore(t *testing.T) {
	mib := env("STORE_MIB", 0)
	if mib == 0 {
		t.Skip("a log of gigabytes on the real disk; runs with STORE_MIB and STORE_QUEUES set, as by make large")
	}
	queues := env("STORE_QUEUES", 8)
	o := storage.Options{FS: vfs.Default, Dir: t.TempDir()}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	o.Events.Recovered = func(r storage.Recovery) { t.Logf("%+v", r) }
	open := func(limit time.Duration) *storetest.Store {
		start := time.Now()
		s, err := storetest.TryOpenLarge(t, o)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		t.Logf("opened in %v", took)
		if took > limit {
			t.Errorf("opened in %v, the limit is %v", took, limit)
		}
		return s
	}
	s := open(time.Minute)
	free := make(chan struct{}, 64)
	for range 64 {
		free <- struct{}{}
	}
	m := storetest.Message("orders", 0, 0, 1024)
	for i := range mib * 1000 {
		<-free
		m.Topic, m.QueueID = fmt.Sprintf("orders%d", i%queues/8), int32(i%queues%8)
		s.Engine.Append(m, func(_ storage.Placed, err error) {
			if err != nil {
				t.Error(err)
			}
			free <- struct{}{}
		})
	}
	for range 64 {
		<-free
	}
	s.AwaitDispatch(s.LogMax())
	s.Abandon() // as if killed: no flush, no clean mark
	s.Engine = nil
	runtime.GC()
	s = open(30 * time.Second)
	start := time.Now()
	if err := s.StopClose(); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed in %v", time.Since(start))
	s = open(10 * time.Second)
	s.StopClose()
}

// R102: many topics: the last thousand take no longer than the first, and an idle one
// costs bytes. TOPICS=200000 for the whole of it.
func TestManyTopics(t *testing.T) {
	n := env("TOPICS", 0)
	if n == 0 {
		t.Skip("hundreds of thousands of topics; runs with TOPICS set to their number, as by make large")
	}
	s, err := storetest.TryOpenLarge(t, storage.Options{FS: vfs.Default, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	thousand := func(from int) time.Duration {
		start := time.Now()
		for i := from; i < from+1000; i++ {
			s.MustAppend(storetest.Message(fmt.Sprintf("topic%d", i), 0, i, 100))
		}
		return time.Since(start)
	}
	first := thousand(0)
	var last time.Duration
	for i := 1000; i < n; i += 1000 {
		last = thousand(i)
	}
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	t.Logf("first thousand %v, last %v, heap %d MiB, %d bytes a topic", first, last, mem.HeapAlloc>>20, int(mem.HeapAlloc)/n)
	start := time.Now()
	if err := s.StopClose(); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed in %v", time.Since(start))
}
