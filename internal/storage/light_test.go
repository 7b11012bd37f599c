package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// lightStore is a store with a state database for its light queues.
type lightStore struct {
	*storetest.Store
	db *state.DB
}

func openLights(t *testing.T, o storage.Options) lightStore {
	t.Helper()
	db, err := state.Open(state.Options{FS: o.FS, Dir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	o.Lights = db.Shelf(state.LightQueues)
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return lightStore{s, db}
}

func (s lightStore) close(t *testing.T) {
	t.Helper()
	s.CloseChecked()
	if err := s.db.Close(); err != nil {
		t.Error(err)
	}
}

// send appends one message with the queues in the property that names them.
func (s lightStore) send(t *testing.T, topic, key string, queues ...string) storage.Placed {
	t.Helper()
	m := storetest.Message(topic, 0, 0, 100)
	m.Properties = message.Properties("").WithAll(message.PropertyUniqKey, key, message.PropertyInnerMultiDispatch, strings.Join(queues, ","))
	type answer struct {
		at  storage.Placed
		err error
	}
	done := make(chan answer, 1)
	s.AppendLight(m, queues, false, func(at storage.Placed, err error) { done <- answer{at, err} })
	a := <-done
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.at
}

// content is the keys of a queue's messages, by offset.
func (s lightStore) content(t *testing.T, queue string) (keys []string) {
	t.Helper()
	for at := s.MinOffset(queue, 0); at < s.MaxOffset(queue, 0); {
		r := s.Read(storage.ReadRequest{Topic: queue, Offset: at})
		if r.Status != storage.Found {
			t.Fatalf("%s at %d: %v", queue, at, r.Status)
		}
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			names := strings.Split(m.Properties.Value(message.PropertyInnerMultiDispatch), ",")
			offsets := strings.Split(m.Properties.Value(message.PropertyInnerMultiQueueOffset), ",")
			if i := slices.Index(names, queue); i < 0 || offsets[i] != fmt.Sprint(rec.QueueOffset) {
				t.Fatalf("%s at %d holds a message for %v at %v", queue, rec.QueueOffset, names, offsets)
			}
			keys = append(keys, strings.Clone(m.Properties.Value(message.PropertyUniqKey)))
		}
		at = r.Next
		r.Release()
	}
	return keys
}

// A message gets into its own queue and into light queues, of which those of lite topics
// have no files, in one order; all of it is there after a clean stop, and after another
// server's checkpoint it is read from the log.
func TestLightQueues(t *testing.T) {
	o := storetest.Small(storage.Options{FS: vfs.NewMem()})
	s := openLights(t, o)
	lite := func(i int) string { return names.Lite("parent", fmt.Sprintf("l%d", i)) }
	const senders, each = 4, 150
	var wg sync.WaitGroup
	for g := range senders {
		wg.Go(func() {
			for i := range each {
				s.send(t, "parent", fmt.Sprintf("%d-%d", g, i), lite(i%3), names.LightPrefix+"plain")
			}
		})
	}
	wg.Wait()
	s.AwaitDispatch(s.LogEnd())
	want := map[string][]string{}
	queues := []string{lite(0), lite(1), lite(2), names.LightPrefix + "plain"}
	for i, q := range queues {
		want[q] = s.content(t, q)
		if n := map[bool]int{true: senders * each, false: senders * each / 3}[i == 3]; len(want[q]) != n {
			t.Fatalf("%s has %d messages, want %d", q, len(want[q]), n)
		}
	}
	if s.Lights() != 4 {
		t.Errorf("%d light queues", s.Lights())
	}
	check := func(what string) {
		t.Helper()
		for _, q := range queues {
			if got := s.content(t, q); !slices.Equal(got, want[q]) {
				t.Errorf("%s: %s has %d messages, want %d", what, q, len(got), len(want[q]))
			}
		}
		folders, err := o.FS.List(path.Join(o.Dir, "consumequeue"))
		slices.Sort(folders)
		if want := []string{"%LMQ%plain", "parent"}; err != nil || !slices.Equal(folders, want) {
			t.Errorf("%s: folders %v, %v", what, folders, err)
		}
	}
	s.close(t)
	s = openLights(t, o)
	check("after a stop")
	want[lite(1)] = append(want[lite(1)], "more")
	s.send(t, "parent", "more", lite(1))
	s.AwaitDispatch(s.LogEnd())
	check("after one more")
	s.close(t)

	// Another server was here: it has folders for lite topics, and knows nothing of the state.
	if err := o.FS.MkdirAll(path.Join(o.Dir, "consumequeue", lite(0), "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := o.FS.Remove(path.Join(o.Dir, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	s = openLights(t, o)
	check("after another server")
	s.close(t)
}

// A clean stop can write light queues as files, which another server reads. This one has no use
// for them, and its own rows are trusted as before.
func TestLightQueuesForAnotherServer(t *testing.T) {
	o := storetest.Small(storage.Options{FS: vfs.NewMem(), QueueFileEntries: 50, ExportLights: func() bool { return true }})
	s := openLights(t, o)
	q := names.Lite("parent", "l")
	for i := range 120 {
		s.send(t, "parent", fmt.Sprint(i), q)
	}
	s.AwaitDispatch(s.LogEnd())
	want := s.content(t, q)
	entries, err := s.Entries(q, 0, 0, 120)
	if err != nil || len(entries) != 120 {
		t.Fatal(len(entries), err)
	}
	s.close(t)
	files := o.FS
	dir := path.Join(o.Dir, "consumequeue", q, "0")
	for i, e := range entries {
		f, err := files.Open(path.Join(dir, segment.Name(int64(i/50*50*20))))
		if err != nil {
			t.Fatal(err)
		}
		var row [20]byte
		if _, err := f.ReadAt(row[:], int64(i%50*20)); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if got := consumequeue.DecodeEntry(row[:]); got.Physical != e.PhysicalOffset || got.Size != e.Size || got.TagsCode != e.TagsCode {
			t.Fatalf("entry %d: %+v, want %+v", i, got, e)
		}
	}
	o.Events.Recovered = func(r storage.Recovery) {
		if r.ScannedFrom != r.End {
			t.Errorf("the log was read again from %d to %d", r.ScannedFrom, r.End)
		}
	}
	s = openLights(t, o)
	if _, err := files.List(dir); !oserror.IsNotExist(err) {
		t.Errorf("the files are still there: %v", err)
	}
	if got := s.content(t, q); !slices.Equal(got, want) {
		t.Errorf("%d messages", len(got))
	}
	s.close(t)
}

// When the last message of a light queue was stored is read once, and known from then on.
func TestLightTime(t *testing.T) {
	var reads atomic.Int64
	o := storetest.Small(storage.Options{FS: errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "commitlog") {
			reads.Add(1)
		}
		return nil
	}))})
	s := openLights(t, o)
	q := names.Lite("parent", "l")
	if at := s.LightTime(q); at != -1 {
		t.Errorf("one that is not there: %d", at)
	}
	s.send(t, "parent", "k", q)
	s.AwaitDispatch(s.LogEnd())
	at := s.StoreTimeAt(q, 0, 0)
	if got := s.LightTime(q); got != at || at <= 0 {
		t.Errorf("at %d, want %d", got, at)
	}
	s.close(t)
	s = openLights(t, o)
	before := reads.Load()
	if got := s.LightTime(q); got != at || reads.Load() == before {
		t.Errorf("after a start: %d, want %d; %d reads", got, at, reads.Load()-before)
	}
	before = reads.Load()
	if got := s.LightTime(q); got != at || reads.Load() != before {
		t.Errorf("asked again: %d, %d reads", got, reads.Load()-before)
	}
	if gone, err := s.ExpireLight(q, 1); !gone || err != nil {
		t.Fatal(err)
	}
	if got := s.LightTime(q); got != -1 {
		t.Errorf("one that has expired: %d", got)
	}
	s.close(t)
}

// A light queue that has expired is gone; the next message begins it anew, and reading the
// whole log again does not mix its lives.
func TestLightQueuesExpire(t *testing.T) {
	o := storetest.Small(storage.Options{FS: vfs.NewMem()})
	s := openLights(t, o)
	q := names.Lite("parent", "l")
	for i := range 70 {
		s.send(t, "parent", fmt.Sprint("old", i), q)
	}
	s.AwaitDispatch(s.LogEnd())
	if gone, err := s.ExpireLight(q, 69); gone || err != nil {
		t.Fatalf("a queue that has gone on expires: %v", err)
	}
	if gone, err := s.ExpireLight(q, 70); !gone || err != nil {
		t.Fatal("it does not expire", err)
	}
	if r := s.Read(storage.ReadRequest{Topic: q}); r.Status != storage.NoMatchedQueue || s.Lights() != 0 {
		t.Errorf("it is still there: %v, %d", r.Status, s.Lights())
	}
	want := []string{"new0", "new1"}
	for _, key := range want {
		s.send(t, "parent", key, q)
	}
	s.AwaitDispatch(s.LogEnd())
	for _, foreign := range []bool{false, true} {
		if got := s.content(t, q); !slices.Equal(got, want) {
			t.Errorf("foreign %v: %v", foreign, got)
		}
		s.close(t)
		if foreign {
			if err := o.FS.Remove(path.Join(o.Dir, "checkpoint")); err != nil {
				t.Fatal(err)
			}
		}
		s = openLights(t, o)
	}
	if got := s.content(t, q); !slices.Equal(got, want) {
		t.Errorf("read again: %v", got)
	}
	if err := s.DeleteTopic("parent"); err != nil || s.Lights() != 0 {
		t.Errorf("the parent is gone and not its lite topics: %v, %d", err, s.Lights())
	}
	s.close(t)
}

func TestLightQueuesAreCounted(t *testing.T) {
	o := storetest.Small(storage.Options{FS: vfs.NewMem(), MaxLights: func() int { return 2 }})
	s := openLights(t, o)
	s.send(t, "parent", "k", names.Lite("parent", "a"), names.LightPrefix+"b")
	s.send(t, "parent", "k", names.Lite("parent", "a"))
	var got error
	s.AppendLight(storetest.Message("parent", 0, 0, 10), []string{names.Lite("parent", "c")}, false, func(_ storage.Placed, err error) { got = err })
	if !errors.Is(got, storage.ErrTooManyLights) || !strings.Contains(got.Error(), "2") || !strings.Contains(got.Error(), "%LMQ%$parent$c") {
		t.Errorf("one too many: %v", got)
	}
	s.close(t)
}

// After a crash at any moment each light queue holds a beginning of what was sent to it,
// whole and in order.
func TestLightQueuesAfterCrash(t *testing.T) {
	rng := seed(t)
	for range 20 {
		fs := vfs.NewCrashableMem()
		o := storetest.Small(storage.Options{FS: fs, CheckpointInterval: time.Duration(1+rng.IntN(5)) * time.Millisecond})
		s := openLights(t, o)
		n := 20 + rng.IntN(300)
		for i := range n {
			s.send(t, "parent", fmt.Sprint(i), names.Lite("parent", fmt.Sprint(i%2)), "%LMQ%plain")
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(rng.Uint64(), 1))})
		s.Abandon()
		_ = s.db.Close()
		o.FS = clone
		s = openLights(t, o)
		own := readAllKeys(t, s, "parent")
		for q, step := range map[string]int{names.Lite("parent", "0"): 2, names.Lite("parent", "1"): 2, "%LMQ%plain": 1} {
			first := 0
			if q == names.Lite("parent", "1") {
				first = 1
			}
			var want []string
			for i := first; i < len(own); i += step {
				want = append(want, fmt.Sprint(i))
			}
			if got := s.content(t, q); !slices.Equal(got, want) {
				t.Fatalf("%s has %d messages, its topic %d", q, len(got), len(own))
			}
		}
		s.send(t, "parent", fmt.Sprint(len(own)), names.Lite("parent", fmt.Sprint(len(own)%2)), "%LMQ%plain")
		s.close(t)
	}
}

func readAllKeys(t *testing.T, s lightStore, topic string) (keys []string) {
	t.Helper()
	for at := int64(0); at < s.MaxOffset(topic, 0); {
		r := s.Read(storage.ReadRequest{Topic: topic, Offset: at, MaxMessages: 100})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, strings.Clone(m.Properties.Value(message.PropertyUniqKey)))
		}
		at = r.Next
		r.Release()
	}
	return keys
}
