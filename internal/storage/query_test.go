package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// alike is one of 8,192 keys that all have one hash: Aa and BB have, in Java.
func alike(i int) string {
	var k strings.Builder
	for bit := range 13 {
		k.WriteString([]string{"Aa", "BB"}[i>>bit&1])
	}
	return k.String()
}

func withKey(i int) *message.Message {
	m := storetest.Message("orders", 0, i, 100)
	m.Properties = message.Properties("KEYS\x01" + alike(i) + "\x02")
	return m
}

func query(i int) storage.KeyQuery {
	return storage.KeyQuery{Topic: "orders", Key: alike(i), Max: 1, End: math.MaxInt64 / 2}
}

type answer struct {
	found []storage.Record
	err   error
}

// find waits for what a query by key finds.
func find(e *storage.Engine, i int) ([]storage.Record, error) {
	c := make(chan answer, 1)
	e.FindKey(query(i), func(found []storage.Record, err error) { c <- answer{found, err} })
	a := <-c
	return a.found, a.err
}

// Keys that all have one hash cost an append nothing, and a query at most a look at each
// record: reads of the oldest grow with their number, not faster. The long form, a million
// of them on the built binary, is in test/scale.
func TestKeysOfOneHash(t *testing.T) {
	reads := func(many int) (appends, oldest int64) {
		var n atomic.Int64
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt {
				n.Add(1)
			}
			return nil
		}))
		s := storetest.Open(t, storage.Options{FS: fs, LogSegmentSize: 256 << 10, IndexEntries: 50_000})
		before := n.Load()
		for i := range many {
			s.MustAppend(withKey(i))
		}
		awaitCheckpoint(t, s)
		appends = n.Load() - before
		for _, i := range []int{many - 1, many / 2, 0} {
			before = n.Load()
			found, err := find(s.Engine, i)
			if err != nil || len(found) != 1 || found[0].QueueOffset != int64(i) {
				t.Fatalf("key %d of %d: %d found, %v", i, many, len(found), err)
			}
		}
		return appends, n.Load() - before
	}
	few, fewOldest := reads(1000)
	many, manyOldest := reads(8000)
	t.Logf("reads of the appends %d and %d, of the query for the oldest key %d and %d", few, many, fewOldest, manyOldest)
	if many > 80 { // a checkpoint beside them may have some pages read again
		t.Error("appends read what was there before")
	}
	if manyOldest > 9*fewOldest+9 {
		t.Error("eight times the keys take more than eight times the reads")
	}
}

// crowded is a store with many keys of one hash in which no loop runs, and the loop of the
// queries by key.
func crowded(t *testing.T, many int) (*storage.Engine, func(context.Context) error) {
	t.Helper()
	return filled(t, storage.Options{QueryRecords: 4000}, many, withKey)
}

// filled is a store with many messages in which no loop runs, and the loop of the queries by
// key.
func filled(t *testing.T, o storage.Options, many int, message func(i int) *message.Message) (*storage.Engine, func(context.Context) error) {
	t.Helper()
	o.LogSegmentSize, o.IndexEntries = 256<<10, 50_000
	o = storetest.Small(o)
	filled, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		filled.MustAppend(message(i))
	}
	filled.CloseChecked()
	e, err := storage.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, l := range e.Loops() {
		if l.Name == "key queries" {
			return e, l.Run
		}
	}
	t.Fatal("no loop for queries by key")
	return nil, nil
}

// Whoever asks does little himself: what takes long is left to a loop, which ends it at a limit.
func TestQueriesThatTakeLong(t *testing.T) {
	e, loop := crowded(t, 6000)
	answers := make(chan answer, 1)
	ask := func(i int) {
		e.FindKey(query(i), func(found []storage.Record, err error) { answers <- answer{found, err} })
	}
	if found, err := e.QueryKey("orders", alike(3000), 10, 0, math.MaxInt64/2); len(found) != 0 || !errors.Is(err, storage.ErrCrowdedHash) {
		t.Errorf("an old one, by who can't wait: %d, %v", len(found), err)
	}
	ask(3000)
	select {
	case a := <-answers:
		t.Fatalf("who asks was kept until the answer: %d, %v", len(a.found), a.err)
	default:
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	if a := <-answers; a.err != nil || len(a.found) != 1 || a.found[0].QueueOffset != 3000 {
		t.Errorf("an old one: %d, %v", len(a.found), a.err)
	}
	for _, c := range []struct {
		i    int
		want error
	}{{5900, nil}, {2000, nil}, {1999, storage.ErrCrowdedHash}, {0, storage.ErrCrowdedHash}} {
		ask(c.i)
		a := <-answers
		if !errors.Is(a.err, c.want) || (len(a.found) == 1) != (c.want == nil) {
			t.Errorf("%d: %d, %v", c.i, len(a.found), a.err)
		}
		if c.want != nil && !strings.Contains(a.err.Error(), "newest 4000 of topic orders") {
			t.Errorf("%d: %v", c.i, a.err)
		}
	}
}

// What takes long is bounded in number, too, and a stop answers it.
func TestQueriesThatTakeLongAtAStop(t *testing.T) {
	e, loop := crowded(t, 3000)
	answers := make(chan answer, 100)
	ask := func() { e.FindKey(query(0), func(found []storage.Record, err error) { answers <- answer{found, err} }) }
	asked := 0
	for ; len(answers) == 0; asked++ {
		if asked == cap(answers) {
			t.Fatalf("%d queries wait", asked)
		}
		ask()
	}
	if a := <-answers; !errors.Is(a.err, storage.ErrManySearches) {
		t.Errorf("query %d: %v", asked, a.err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := loop(ctx); err != nil {
		t.Error(err)
	}
	for range asked - 1 {
		if a := <-answers; !errors.Is(a.err, storage.ErrClosed) {
			t.Errorf("%d, %v", len(a.found), a.err)
		}
	}
	ask()
	if a := <-answers; !errors.Is(a.err, storage.ErrClosed) {
		t.Errorf("after the stop: %v", a.err)
	}
}

// The work of a query is counted, not timed: on a disk that takes long for each read it finds
// what it would find on a fast one, up to a time at which nobody waits any more. The loop
// rests as long as it works.
func TestQueriesCountTheirWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64 // ns for each read
		var reading atomic.Int64
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if d := slow.Load(); d > 0 && op.Kind == errorfs.OpFileReadAt {
				reading.Add(d)
				time.Sleep(time.Duration(d)) // simulated
			}
			return nil
		}))
		e, loop := filled(t, storage.Options{QueryRecords: 4000, FS: fs}, 4500, withKey)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- loop(ctx) }()
		defer func() { stop(); <-ended }()

		slow.Store(int64(time.Millisecond))
		began := time.Now()
		if found, err := find(e, 4500-3500); err != nil || len(found) != 1 {
			t.Errorf("after %v: %d, %v", time.Since(began), len(found), err)
		}
		worked, took := time.Duration(reading.Load()), time.Since(began)
		if worked < 3*time.Second || took < 2*worked-20*time.Millisecond || took > 2*worked+20*time.Millisecond {
			t.Errorf("it worked %v and took %v", worked, took)
		}
		slow.Store(int64(10 * time.Millisecond))
		began = time.Now()
		_, err := find(e, 1000)
		if took = time.Since(began); !errors.Is(err, storage.ErrCrowdedHash) || took < 15*time.Second || took > 16*time.Second {
			t.Errorf("nobody waits any more: %v, %v", took, err)
		}
	})
}

// What a query reads in vain is bounded in bytes, and what it goes through in entries of the
// index, which are those of other hashes, too.
func TestQueriesAreBounded(t *testing.T) {
	ask := func(o storage.Options, many int, message func(i int) *message.Message, q storage.KeyQuery) error {
		t.Helper()
		e, loop := filled(t, o, many, message)
		answers := make(chan error, 1)
		q.Topic, q.Max, q.End = "orders", 1, math.MaxInt64/2
		e.FindKey(q, func(_ []storage.Record, err error) { answers <- err })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- loop(ctx) }()
		defer func() { stop(); <-ended }()
		return <-answers
	}
	large := func(i int) *message.Message {
		m := withKey(i)
		m.Body = make([]byte, 100<<10)
		return m
	}
	for newest, want := range map[int]error{5: nil, 20: storage.ErrCrowdedHash} { // 1000 KiB are ten of them
		err := ask(storage.Options{QueryRecords: 100}, 30, large, storage.KeyQuery{Key: alike(30 - newest)})
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "newest 10 of topic orders") {
			t.Errorf("number %d of the newest: %v", newest, err)
		}
	}
	other := func(i int) *message.Message {
		m := storetest.Message("orders", 0, i, 10)
		m.Properties = message.Properties(fmt.Sprintf("KEYS\x01k%d\x02", i))
		return m
	}
	for newest, want := range map[int]error{3000: nil, 5000: storage.ErrCrowdedHash} {
		err := ask(storage.Options{QueryRecords: 100, IndexSlots: 1}, 6000, other, storage.KeyQuery{Key: fmt.Sprint("k", 6000-newest)})
		if !errors.Is(err, want) {
			t.Errorf("entry %d of the newest: %v", newest, err)
		}
	}
}

// A query whose asker has gone is left as soon as its turn comes.
func TestQueryOfSomebodyWhoHasGone(t *testing.T) {
	e, loop := crowded(t, 3000)
	q := query(0)
	gone := false
	q.Gone = func() bool { return gone }
	answers := make(chan answer, 1)
	e.FindKey(q, func(found []storage.Record, err error) { answers <- answer{found, err} })
	gone = true
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx) }()
	defer func() { stop(); <-ended }()
	if a := <-answers; !errors.Is(a.err, storage.ErrNobodyWaits) || len(a.found) != 0 {
		t.Errorf("%d, %v", len(a.found), a.err)
	}
}
