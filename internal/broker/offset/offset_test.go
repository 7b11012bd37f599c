package offset

import (
	"errors"
	"slices"
	"testing"
)

func open(t *testing.T, o Options) *Table {
	t.Helper()
	table, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func want(t *testing.T, table *Table, group, topic string, queue int32, off int64, ok bool) {
	t.Helper()
	if got, found := table.Query(group, topic, queue); got != off || found != ok {
		t.Fatalf("%s %s %d: %d, %v; want %d, %v", group, topic, queue, got, found, off, ok)
	}
}

func TestOffsetsMoveBackOnlyByCommand(t *testing.T) {
	var regressed []int64
	table := open(t, Options{Events: Events{Regressed: func(_, _ string, _ int32, from, to int64) { regressed = append(regressed, from, to) }}})
	want(t, table, "g", "t", 0, 0, false)
	table.Advance("g", "t", 0, 10)
	want(t, table, "g", "t", 0, 10, true)
	table.Advance("g", "t", 0, 5)
	want(t, table, "g", "t", 0, 10, true)
	if err := table.Commit("g", "t", 0, 7); err != nil {
		t.Fatal(err)
	}
	want(t, table, "g", "t", 0, 7, true)
	if !slices.Equal(regressed, []int64{10, 7}) {
		t.Fatalf("regressions reported: %v", regressed)
	}
}

func TestResetIsTakenOnce(t *testing.T) {
	table := open(t, Options{})
	table.Advance("g", "t", 0, 10)
	table.Reset("g", "t", 0, 3)
	want(t, table, "g", "t", 0, 3, true)
	if _, ok := table.TakeReset("g", "t", 1); ok {
		t.Fatal("another queue is reset, too")
	}
	table.Advance("g", "t", 0, 11) // of the time before the reset
	if err := table.Commit("g", "t", 0, 11); !errors.Is(err, ErrResetPending) {
		t.Fatal(err)
	}
	want(t, table, "g", "t", 0, 3, true)
	if off, ok := table.TakeReset("g", "t", 0); !ok || off != 3 {
		t.Fatal(off, ok)
	}
	if _, ok := table.TakeReset("g", "t", 0); ok {
		t.Fatal("taken twice")
	}
	table.Advance("g", "t", 0, 4)
	want(t, table, "g", "t", 0, 4, true)
}

func TestTopicsAndGroups(t *testing.T) {
	table := open(t, Options{})
	table.Advance("g1", "t1", 0, 1)
	table.Advance("g1", "t2", 0, 1)
	table.Advance("g2", "t1", 0, 1)
	if got := table.TopicsOf("g1"); !slices.Equal(got, []string{"t1", "t2"}) {
		t.Fatal(got)
	}
	if got := table.GroupsOf("t1"); !slices.Equal(got, []string{"g1", "g2"}) {
		t.Fatal(got)
	}
}

// P4: no offset points past the recovered end of its queue.
func TestClamp(t *testing.T) {
	table := open(t, Options{})
	table.Advance("g", "t", 0, 10)
	table.Advance("g", "t", 1, 3)
	table.Reset("g", "t", 2, 20)
	if n := table.Clamp(func(string, int32) (int64, int64) { return 0, 5 }); n != 2 {
		t.Fatalf("%d moved", n)
	}
	want(t, table, "g", "t", 0, 5, true)
	want(t, table, "g", "t", 1, 3, true)
	if off, _ := table.TakeReset("g", "t", 2); off != 5 {
		t.Fatalf("a pending reset still points to %d", off)
	}
}
