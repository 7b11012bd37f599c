package admin

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/state"
)

type leavings struct{ names []string }

func (l *leavings) Leave(group, topic string)             { l.names = append(l.names, group+"/"+topic) }
func (l *leavings) DropTopic(string, *state.Batch)        {}
func (l *leavings) DropGroup(string, *state.Batch)        {}
func (*leavings) Figures(func(string) bool) []pop.Figures { return nil }
func (l *leavings) take() (names []string)                { names, l.names = l.names, nil; return names }
func (l *leavings) want(t *testing.T, names ...string) {
	t.Helper()
	if got := l.take(); !slices.Equal(got, names) {
		t.Errorf("left %q, want %q", got, names)
	}
}

// TestSwitchesOfMode: a group that goes over from POP to pull leaves POP, also in the next
// process, until it pops again.
func TestSwitchesOfMode(t *testing.T) {
	fs := vfs.NewMem()
	left := &leavings{}
	var db *state.DB
	open := func() *Admin {
		var err error
		if db, err = state.Open(state.Options{FS: fs, Dir: "state"}); err != nil {
			t.Fatal(err)
		}
		cfg := config.NewLive(config.DefaultBroker())
		topics, err := topic.Open(topic.Options{State: db, Config: cfg})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := group.Open(group.Options{State: db, Config: cfg})
		if err != nil {
			t.Fatal(err)
		}
		if err := topics.Put(topic.New("t")); err != nil {
			t.Fatal(err)
		}
		if err := groups.Put(group.New("g")); err != nil {
			t.Fatal(err)
		}
		a, err := Open(Options{Config: cfg, State: db, Topics: topics, Groups: groups, Pop: left,
			Clients: clients.New(clients.Options{Config: cfg, Topics: topics, Groups: groups})})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	set := func(a *Admin, m Mode) {
		t.Helper()
		if err := a.SetMode("t", "g", m); err != nil {
			t.Fatal(err)
		}
	}

	a := open()
	set(a, Mode{})
	left.want(t)
	set(a, Mode{Pop: true, ShareQueues: 3})
	left.want(t)
	set(a, Mode{})
	left.want(t, "g/t")
	set(a, Mode{})
	left.want(t, "g/t") // asked again, it looks again
	if !a.Left("g", "t") || a.Left("t", "g") || a.Mode("t", "g").Pop {
		t.Error("the switch is not known")
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a = open()
	a.Resume()
	left.want(t, "g/t")
	a.Popped("g", "t")
	if a.Left("g", "t") {
		t.Error("a group that pops has left POP")
	}
	set(a, Mode{Pop: true})
	set(a, Mode{})
	set(a, Mode{Pop: true, ShareQueues: 3})
	left.want(t, "g/t")
	if m := a.Mode("t", "g"); a.Left("g", "t") || m != (Mode{true, 3}) {
		t.Error(m)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
