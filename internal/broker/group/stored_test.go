package group

import (
	"testing"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestGroupsSurviveARestart(t *testing.T) {
	fs := vfs.NewMem()
	openTable := func() (*Table, *state.DB) {
		db, err := state.Open(state.Options{FS: fs, Dir: "state"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		table, err := Open(Options{State: db, Config: config.NewLive(config.DefaultBroker())})
		if err != nil {
			t.Fatal(err)
		}
		return table, db
	}
	table, db := openTable()
	c := New("g")
	c.ConsumeEnable, c.RetryMaxTimes = false, 3
	c.Retry = RetryPolicy{Next: []int64{1, 2}}
	c.Attributes = map[string]string{"+priority.factor": "7"}
	c.Subscriptions = []Subscription{{Topic: "t", Expression: "*"}}
	for _, err := range []error{table.Put(c), table.Put(New("gone")), table.Forbid("g", "t", 1), table.Forbid("gone", "t", 1), table.Delete("gone")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before, version := table.All(), table.Version()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	table, _ = openTable()
	after := table.All()
	if table.Version() != version || len(after) != len(before) {
		t.Fatalf("%v, was %v; %d groups, were %d", table.Version(), version, len(after), len(before))
	}
	for i := range after {
		if !after[i].Equal(before[i]) {
			t.Errorf("%+v, was %+v", after[i], before[i])
		}
	}
	if table.Forbidden("g", "t") != 1 || table.Forbidden("gone", "t") != 0 {
		t.Fatal("bans are wrong")
	}
	if err := table.Forbid("g", "t", 0); err != nil || table.Forbidden("g", "t") != 0 {
		t.Fatal(err)
	}
}
