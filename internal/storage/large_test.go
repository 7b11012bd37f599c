package storage_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
)

func env(name string, standard int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return standard
}

// R101: the start depends on the unflushed tail only. STORE_MIB of log in STORE_QUEUES
// queues on the real disk; runs when STORE_MIB is set, e.g. STORE_MIB=10240.
func TestStartOfALargeStore(t *testing.T) {
	mib := env("STORE_MIB", 0)
	if mib == 0 {
		t.Skip("STORE_MIB is not set")
	}
	queues := env("STORE_QUEUES", 8)
	o := storage.Options{FS: vfs.Default, Dir: t.TempDir()}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	o.Events.Recovered = func(r storage.Recovery) { t.Logf("%+v", r) }
	open := func() *storetest.Store {
		start := time.Now()
		s, err := storetest.TryOpenLarge(t, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("opened in %v", time.Since(start))
		return s
	}
	s := open()
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
	s = open()
	start := time.Now()
	if err := s.StopClose(); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed in %v", time.Since(start))
	s = open()
	s.StopClose()
}

// R102: many topics: the last thousand take no longer than the first, and an idle one
// costs bytes. TOPICS=200000 for the whole of it.
func TestManyTopics(t *testing.T) {
	n := env("TOPICS", 0)
	if n == 0 {
		t.Skip("TOPICS is not set")
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
