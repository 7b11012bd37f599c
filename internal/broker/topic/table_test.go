package topic

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/bolidemq/bolide/internal/config"
)

func open(t *testing.T, change func(*config.Broker), o Options) *Table {
	t.Helper()
	c := config.DefaultBroker()
	if change != nil {
		change(&c)
	}
	o.Config = config.NewLive(c)
	table, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCreateForSend(t *testing.T) {
	for _, c := range []struct {
		name, template  string
		change          func(*config.Broker)
		ask, want, perm int32
		err             error
	}{
		{name: "asks for fewer", template: "TBW102", ask: 4, want: 4, perm: 6},
		{name: "asks for more", template: "TBW102", ask: 100, want: 8, perm: 6},
		{name: "asks for less than none", template: "TBW102", ask: -3, want: 0, perm: 6},
		{name: "another template", template: "DefaultCluster", ask: 100, want: 16, perm: 6},
		{name: "closed template", template: "DefaultCluster", change: func(b *config.Broker) { b.ClusterTopicEnable = false }, ask: 4, want: 4, perm: 0},
		{name: "no template", template: "none", ask: 4, err: ErrNoTemplate},
		{name: "no inheritance", template: "BenchmarkTest", ask: 4, err: ErrNoTemplate},
		{name: "switched off", template: "TBW102", change: func(b *config.Broker) { b.AutoCreateTopicEnable = false }, ask: 4, err: ErrNoTemplate},
	} {
		var changed []string
		table := open(t, c.change, Options{Events: Events{Changed: func(names []string) { changed = append(changed, names...) }}})
		cfg, created, err := table.CreateForSend("new", c.template, c.ask, 0)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		if c.err != nil {
			if _, ok := table.Get("new"); ok || len(changed) != 0 {
				t.Errorf("%s: refused, and yet it is there", c.name)
			}
			continue
		}
		if err != nil || !created || cfg.WriteQueues != c.want || cfg.ReadQueues != c.want || cfg.Perm != c.perm {
			t.Errorf("%s: %+v, %v, %v", c.name, cfg, created, err)
		}
		if len(changed) != 1 || changed[0] != "new" {
			t.Errorf("%s: events %v", c.name, changed)
		}
		if _, created, _ := table.CreateForSend("new", c.template, c.ask, 0); created {
			t.Errorf("%s: created twice", c.name)
		}
	}
}

// P8: an earlier life of a name is not dispatched into a later one.
func TestBirth(t *testing.T) {
	end := int64(100)
	table := open(t, nil, Options{LogEnd: func() int64 { return end }})
	if b := table.Birth("t"); b != 0 {
		t.Fatalf("a name that nobody has used: %d", b)
	}
	if err := table.Put(New("t")); err != nil {
		t.Fatal(err)
	}
	if b := table.Birth("t"); b != 0 {
		t.Fatalf("a first life begins with the log, not at %d: what a crash left of it is kept", b)
	}
	end = 500
	if err := table.Delete("t"); err != nil {
		t.Fatal(err)
	}
	if b := table.Birth("t"); b != math.MaxInt64 {
		t.Fatalf("a deleted topic: %d", b)
	}
	end = 700
	if err := table.Put(New("t")); err != nil {
		t.Fatal(err)
	}
	if b := table.Birth("t"); b != 700 {
		t.Fatalf("a second life: %d", b)
	}
	if err := table.Delete("none"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

func TestPut(t *testing.T) {
	table := open(t, nil, Options{})
	for _, c := range []struct {
		cfg *Config
		err error
	}{
		{&Config{Name: "a b"}, ErrIllegalName},
		{&Config{Name: ""}, ErrIllegalName},
		{&Config{Name: "TBW102", ReadQueues: 1, WriteQueues: 1, Perm: 6}, ErrSystemTopic},
		{&Config{Name: "DefaultCluster", ReadQueues: 1, WriteQueues: 1, Perm: 6}, ErrSystemTopic},
		{&Config{Name: "t", ReadQueues: -1, WriteQueues: 1, Perm: 6}, ErrIllegal},
		{&Config{Name: "t", ReadQueues: 1, WriteQueues: 1 << 20, Perm: 6}, ErrIllegal},
		{&Config{Name: "t", ReadQueues: 1, WriteQueues: 1, Perm: 99}, ErrIllegal},
		{&Config{Name: "t", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "MIXED"}}, ErrMixed},
		{&Config{Name: "t", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+foo": "x"}}, config.ErrAttribute},
		{&Config{Name: "t", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "FIFO"}}, nil},
	} {
		before := table.Version()
		err := table.Put(c.cfg)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%+v: %v, want %v", c.cfg, err, c.err)
		}
		if moved := table.Version() != before; moved != (err == nil) {
			t.Errorf("%+v: data version moved: %v", c.cfg, moved)
		}
	}
	cfg, _ := table.Get("t")
	if cfg.MessageType() != "FIFO" {
		t.Fatalf("message type %s", cfg.MessageType())
	}
	snapshot := *cfg
	change := cfg.Clone()
	change.WriteQueues, change.Attributes = 9, map[string]string{"-message.type": ""}
	if err := table.Put(change); err != nil {
		t.Fatal(err)
	}
	if cfg.WriteQueues != snapshot.WriteQueues || cfg.MessageType() != "FIFO" {
		t.Fatal("a published configuration has changed")
	}
	if now, _ := table.Get("t"); now.MessageType() != "NORMAL" || now.WriteQueues != 9 {
		t.Fatalf("%+v", now)
	}
}

// A crash takes records that were being written when a topic was created again: the
// topic's next messages lie before its birth and must not be taken for an earlier one's.
func TestClampOfBirths(t *testing.T) {
	end := int64(1000)
	table := open(t, nil, Options{LogEnd: func() int64 { return end }})
	for _, name := range []string{"old", "again"} {
		if err := table.Put(New(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Delete("again"); err != nil {
		t.Fatal(err)
	}
	if err := table.Put(New("again")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		end   int64
		moved int
		birth int64
	}{{1000, 0, 1000}, {400, 1, 400}, {400, 0, 400}, {700, 0, 400}} {
		moved, err := table.Clamp(step.end)
		if err != nil || moved != step.moved || table.Birth("again") != step.birth || table.Birth("old") != 0 {
			t.Errorf("log ends at %d: %d moved (%v), births %d and %d", step.end, moved, err, table.Birth("again"), table.Birth("old"))
		}
	}
}

// POP hands names on that lie in a buffer which is used again.
func TestCreateInternalKeepsItsName(t *testing.T) {
	table := open(t, nil, Options{})
	buf := []byte("%RETRY%g+t")
	name := unsafe.String(&buf[0], len(buf))
	if _, _, err := table.CreateInternal(name, 1, PermRead|PermWrite, false, 0); err != nil {
		t.Fatal(err)
	}
	copy(buf, "overwritten")
	if c, ok := table.Get("%RETRY%g+t"); !ok || c.Name != "%RETRY%g+t" {
		t.Errorf("%v %t", c, ok)
	}
}
