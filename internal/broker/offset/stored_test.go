package offset

import (
	"context"
	"errors"
	"testing"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func openState(t *testing.T, fs vfs.FS) *state.DB {
	t.Helper()
	db, err := state.Open(state.Options{FS: fs, Dir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOffsetsSurviveARestart(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	table := open(t, Options{State: db})
	table.Advance("g", "t", 0, 10)
	table.Advance("g", "t", 7, 70)
	table.Advance("gone", "t", 0, 1)
	table.Advance("g", "gone", 0, 1)
	table.Reset("g", "t", 7, 3)
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := table.DeleteGroup("gone"); err != nil {
		t.Fatal(err)
	}
	if err := table.DeleteTopic("gone"); err != nil {
		t.Fatal(err)
	}
	called := false
	table.CommitThen("g", "t", 1, 11, func(err error) { called = err == nil })
	if !called {
		t.Fatal("no answer to a commit")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	table.Advance("g", "t", 0, 12)
	if err := table.Run(ctx); !errors.Is(err, context.Canceled) { // the clean stop flushes
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	table = open(t, Options{State: openState(t, fs)})
	want(t, table, "g", "t", 0, 12, true)
	want(t, table, "g", "t", 1, 11, true)
	want(t, table, "g", "t", 7, 3, true)
	want(t, table, "gone", "t", 0, 0, false)
	want(t, table, "g", "gone", 0, 0, false)
	if off, ok := table.TakeReset("g", "t", 7); !ok || off != 3 {
		t.Fatal("a reset that nobody has taken was forgotten")
	}
}

func TestCommitThenIsThereWithoutAFlush(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	table := open(t, Options{State: db})
	table.CommitThen("g", "t", 1, 11, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err := db.Close(); err != nil { // no flush: the process was killed
		t.Fatal(err)
	}
	want(t, open(t, Options{State: openState(t, fs)}), "g", "t", 1, 11, true)
}

func FuzzParseKey(f *testing.F) {
	f.Add(storeKey(key{"g", "t"}, 1))
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, q, ok := parseKey(b)
		if ok && string(storeKey(k, q)) != string(b) {
			t.Fatalf("%q parses to %v %d", b, k, q)
		}
	})
}

func BenchmarkAdvance(b *testing.B) {
	table, err := Open(Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		table.Advance("group", "topic", int32(i%8), i)
	}
}
