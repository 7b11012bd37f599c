package topic

import (
	"math"
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

// R099: deleted stays deleted.
func TestTopicsSurviveARestart(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	end := func() int64 { return 42 }
	table := open(t, nil, Options{State: db, LogEnd: end})
	if err := table.Put(&Config{Name: "t", ReadQueues: 3, WriteQueues: 2, Perm: 4, Order: true, SysFlag: 1,
		Attributes: map[string]string{"+message.type": "FIFO"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone", "again"} {
		if err := table.Put(New(name)); err != nil {
			t.Fatal(err)
		}
		if err := table.Delete(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Put(New("again")); err != nil {
		t.Fatal(err)
	}
	before, version := table.All(), table.Version()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	table = open(t, nil, Options{State: openState(t, fs), LogEnd: end})
	if table.Version() != version {
		t.Fatalf("data version %v, was %v: opening changes nothing", table.Version(), version)
	}
	after := table.All()
	if len(after) != len(before) {
		t.Fatalf("%d topics, were %d", len(after), len(before))
	}
	for i := range after {
		if !after[i].Equal(before[i]) || after[i].Birth != before[i].Birth {
			t.Errorf("%+v, was %+v", after[i], before[i])
		}
	}
	if table.Birth("gone") != math.MaxInt64 || table.Birth("again") != 42 {
		t.Fatalf("graves: %d, %d", table.Birth("gone"), table.Birth("again"))
	}
}
