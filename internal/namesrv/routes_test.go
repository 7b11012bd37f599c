package namesrv

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// dump is the whole table, sorted.
func dump(r *routes) string {
	var b strings.Builder
	for _, name := range sortedKeys(r.brokers) {
		k := r.brokers[name]
		fmt.Fprintf(&b, "%s/%s", k.Cluster, name)
		for _, id := range sortedKeys(k.Addresses) {
			fmt.Fprintf(&b, " %d=%s", id, k.Addresses[id])
		}
		b.WriteString("\n")
	}
	for _, name := range sortedKeys(r.topics) {
		fmt.Fprintf(&b, "  %s", name)
		for _, broker := range sortedKeys(r.topics[name]) {
			q := r.topics[name][broker]
			fmt.Fprintf(&b, " %s:%d/%d/%d", broker, q.ReadQueues, q.WriteQueues, q.Perm)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func topics(names ...string) (list []Topic) {
	for _, n := range names {
		list = append(list, Topic{Name: n, ReadQueues: 4, WriteQueues: 4, Perm: 6})
	}
	return list
}

func reg(broker string, id int64, addr Address, version int64, names ...string) Registration {
	return Registration{Cluster: "c", Broker: broker, ID: id, Address: addr, Version: Version{Counter: version}, Topics: topics(names...), Conn: addr}
}

func TestRegister(t *testing.T) {
	const minute = time.Minute
	changed := func(g Registration, f func(*Registration)) Registration { f(&g); return g }
	for _, c := range []struct {
		name string
		do   []Registration
		err  error
		want string
	}{
		{"a master", []Registration{reg("a", 0, "h:1", 1, "t", "u")}, nil, "c/a 0=h:1\n  t a:4/4/6\n  u a:4/4/6\n"},
		{"no name", []Registration{reg("", 0, "h:1", 1, "t", "u")}, ErrIllegal, ""},
		{"one topic before all", []Registration{reg("a", 0, "h:1", 1, "t")}, ErrNotRegistered, ""},
		{"one topic after all", []Registration{reg("a", 0, "h:1", 1, "t", "u"), reg("a", 0, "h:1", 2, "v")}, nil,
			"c/a 0=h:1\n  t a:4/4/6\n  u a:4/4/6\n  v a:4/4/6\n"},
		{"a broker that says whole", []Registration{reg("a", 0, "h:1", 1, "t", "u"),
			changed(reg("a", 0, "h:1", 2, "t"), func(g *Registration) { g.Whole = true })}, nil,
			"c/a 0=h:1\n  t a:4/4/6\n"},
		{"two brokers", []Registration{reg("a", 0, "h:1", 1, "t", "u"), reg("b", 0, "h:2", 1, "t", "w")}, nil,
			"c/a 0=h:1\nc/b 0=h:2\n  t a:4/4/6 b:4/4/6\n  u a:4/4/6\n  w b:4/4/6\n"},
		{"a slave's topics do not count beside a master", []Registration{reg("a", 0, "h:1", 1, "t", "u"), reg("a", 1, "h:2", 1, "x", "y")}, nil,
			"c/a 0=h:1 1=h:2\n  t a:4/4/6\n  u a:4/4/6\n"},
		{"a slave alone", []Registration{reg("a", 1, "h:2", 1, "x", "y")}, nil, "c/a 1=h:2\n  x a:4/4/6\n  y a:4/4/6\n"},
		{"an old slave alone", []Registration{changed(reg("a", 1, "h:2", 1, "x", "y"), func(g *Registration) { g.OldBroker = true })}, nil, "c/a 1=h:2\n"},
		{"an acting master may not be written to", []Registration{changed(reg("a", 1, "h:2", 1, "x", "y"), func(g *Registration) { g.ActingMaster = true })}, nil,
			"c/a 1=h:2\n  x a:4/4/4\n  y a:4/4/4\n"},
		{"a slave becomes master", []Registration{reg("a", 1, "h:2", 1, "x", "y"), reg("a", 0, "h:2", 2, "x", "z")}, nil,
			"c/a 0=h:2\n  x a:4/4/6\n  y a:4/4/6\n  z a:4/4/6\n"},
		{"a broker comes back at another address", []Registration{reg("a", 0, "h:1", 1, "t", "u"), reg("a", 0, "h:9", 1, "t", "u")}, nil,
			"c/a 0=h:9\n  t a:4/4/6\n  u a:4/4/6\n"},
		{"one that was replaced and does not know it", []Registration{
			changed(reg("a", 0, "h:1", 1, "t", "u"), func(g *Registration) { g.Version.State = 5 }), reg("a", 0, "h:9", 9, "v", "w")}, nil,
			"c/a 0=h:1\n  t a:4/4/6\n  u a:4/4/6\n"},
	} {
		r := newRoutes()
		var err error
		for i := range c.do {
			if _, e := r.register(&c.do[i], minute, start); e != nil {
				err = e
			}
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
		if got := dump(r); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestUnchangedVersionKeepsWhatWasWiped(t *testing.T) {
	r := newRoutes()
	g := reg("a", 0, "h:1", 1, "t", "u")
	mustRegister(t, r, g)
	if n := r.setWrite("a", false); n != 2 {
		t.Fatal(n)
	}
	mustRegister(t, r, g)
	if got := dump(r); got != "c/a 0=h:1\n  t a:4/4/4\n  u a:4/4/4\n" {
		t.Fatal(got)
	}
	if n := r.setWrite("a", true); n != 2 || r.topics["t"]["a"].Perm != 6 {
		t.Fatal(n, dump(r))
	}
	r.setWrite("a", false)
	g.Version.Counter++
	mustRegister(t, r, g)
	if r.topics["t"]["a"].Perm != 6 {
		t.Fatal(dump(r))
	}
}

func mustRegister(t *testing.T, r *routes, g Registration) {
	t.Helper()
	if _, err := r.register(&g, time.Minute, start); err != nil {
		t.Fatal(err)
	}
}

// TestDiffRetryTopicsAreRouted: Apache routes a group's retry topic from the group's first
// heartbeat on, which a consumer sends after it has asked.
func TestDiffRetryTopicsAreRouted(t *testing.T) {
	r := newRoutes()
	if _, ok := r.route("%RETRY%g", false); ok {
		t.Error("routed without a broker")
	}
	mustRegister(t, r, reg("a", 0, "h:1", 1, "t", "u"))
	mustRegister(t, r, reg("b", 0, "h:2", 1, "t", "u"))
	mustRegister(t, r, reg("c", 1, "h:3", 1, "t", "u")) // a slave alone
	route, ok := r.route("%RETRY%g", false)
	want := []Queues{{Broker: "a", ReadQueues: 1, WriteQueues: 1, Perm: 6}, {Broker: "b", ReadQueues: 1, WriteQueues: 1, Perm: 6}}
	if !ok || !slices.Equal(route.Queues, want) || len(route.Brokers) != 2 {
		t.Errorf("%+v", route)
	}
	for _, other := range []string{"g", "%DLQ%g"} {
		if _, ok := r.route(other, false); ok {
			t.Errorf("%s is routed", other)
		}
	}
	mustRegister(t, r, reg("b", 0, "h:2", 2, "t", "%RETRY%g"))
	if route, _ := r.route("%RETRY%g", false); len(route.Queues) != 1 || route.Queues[0].Broker != "b" {
		t.Errorf("where it is made, it is as the broker says: %+v", route)
	}
	foreign := reg("d", 0, "h:4", 1, "t", "u")
	foreign.Cluster = "another"
	mustRegister(t, r, foreign)
	if _, ok := r.route("%RETRY%h", false); ok {
		t.Error("routed to a cluster that the group may not be of")
	}
}

// R110: a removal applies to the registration that it was decided for.
func TestLateRemoval(t *testing.T) {
	r := newRoutes()
	g := reg("a", 0, "h:1", 1, "t", "u")
	mustRegister(t, r, g)
	late := r.silent(start.Add(2 * time.Minute))
	if len(late) != 1 {
		t.Fatal(late)
	}
	g.Conn = "another connection"
	if _, err := r.register(&g, time.Minute, start.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if r.remove(late[0].key, late[0].number) {
		t.Fatal("the newer registration was removed")
	}
	for _, e := range r.on(Address("h:1")) { // the first connection closes late
		t.Fatal("the first connection still has", e)
	}
	if _, ok := r.route("t", false); !ok {
		t.Fatal("no route")
	}
	r.remove(liveKey{"c", "h:1"}, r.live[liveKey{"c", "h:1"}].number)
	if got := dump(r); got != "" {
		t.Fatal(got)
	}
}

func TestRemoveOfMaster(t *testing.T) {
	r := newRoutes()
	master, slave := reg("a", 0, "h:1", 1, "t", "u"), reg("a", 1, "h:2", 1, "t", "u")
	master.ActingMaster, slave.ActingMaster, master.HAAddress = true, true, "h:10"
	mustRegister(t, r, master)
	told, err := r.register(&slave, time.Minute, start)
	if err != nil || told.MasterAddress != "h:1" || told.MasterHAAddress != "h:10" {
		t.Fatal(told, err)
	}
	r.remove(liveKey{"c", "h:1"}, r.live[liveKey{"c", "h:1"}].number)
	if got := dump(r); got != "c/a 1=h:2\n  t a:4/4/4\n  u a:4/4/4\n" {
		t.Fatal(got)
	}
	if route, _ := r.route("t", true); route.Brokers[0].Addresses[0] != "h:2" {
		t.Fatal("no acting master", route)
	}
	if route, _ := r.route("t", false); route.Brokers[0].Addresses[1] != "h:2" {
		t.Fatal("an acting master that nobody asked for", route)
	}
}

func TestTopicsOfAdministrators(t *testing.T) {
	r := newRoutes()
	mustRegister(t, r, reg("a", 0, "h:1", 1, "t", "u"))
	if err := r.addTopic("v", []Queues{{Broker: "none"}}); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := r.addTopic("v", []Queues{{Broker: "a", ReadQueues: 1, WriteQueues: 1, Perm: 6}}); err != nil {
		t.Fatal(err)
	}
	r.deleteTopic("t", "other")
	r.deleteTopic("u", "c")
	all := r.topicsWhere(func(map[string]Queues) bool { return true })
	if !slices.Equal(all, []string{"t", "v"}) {
		t.Fatal(all)
	}
	r.deleteTopic("t", "")
	if _, ok := r.route("t", false); ok {
		t.Fatal("deleted")
	}
}

func TestAddressOfAsker(t *testing.T) {
	for _, c := range []struct {
		a     Address
		local string
		want  string
	}{
		{"10.0.0.1:10911", "192.168.1.5:0", "10.0.0.1:10911"},
		{Self(10911), "192.168.1.5:0", "192.168.1.5:10911"},
		{Self(10911), "[::ffff:192.168.1.5]:0", "192.168.1.5:10911"},
		{Self(10911), "[fe80::1%eth0]:0", "[fe80::1]:10911"},
		{Self(10911), "0.0.0.0:0", "127.0.0.1:10911"},
		{Self(10911), "192.168.1.5:8080", "192.168.1.5:8080"},
		{SelfAt(netip.MustParseAddrPort("10.0.0.5:10911")), "192.168.1.5:0", "10.0.0.5:10911"},
		{SelfAt(netip.MustParseAddrPort("[fd00::5]:10911")), "127.0.0.1:0", "[fd00::5]:10911"},
		{SelfAt(netip.MustParseAddrPort("10.0.0.5:10911")), "192.168.1.5:8080", "192.168.1.5:8080"},
		{"self:nonsense", "192.168.1.5:0", "self:nonsense"},
	} {
		if got := c.a.At(netip.MustParseAddrPort(c.local)); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.a, c.local, got, c.want)
		}
	}
	if got := Self(1).At(netip.AddrPort{}); got != "127.0.0.1:1" {
		t.Error(got)
	}
}

// TestBrokerOfThisProcessKeepsItsPlace: it registers once, so whoever took its place would
// leave the routes without it for good.
func TestBrokerOfThisProcessKeepsItsPlace(t *testing.T) {
	table := newTable(Options{})
	ours := reg("a", 0, Self(10911), 1, "t", "u")
	ours.Conn = nil
	if _, err := table.Register(ours); err != nil {
		t.Fatal(err)
	}
	before := dump(table.mu.r)
	otherCluster := reg("a", 0, "h:1", 9, "t", "u")
	otherCluster.Cluster = "d"
	for _, g := range []Registration{reg("a", 0, "h:1", 9, "t", "u"), reg("b", 0, Self(10911), 9, "t", "u"), otherCluster,
		reg("b", 0, Elsewhere(string(Self(10911))), 9, "t", "u"), reg("b", 0, Elsewhere(string(Self(1))), 9, "t", "u")} {
		if _, err := table.Register(g); !errors.Is(err, ErrIllegal) {
			t.Errorf("%+v is taken: %v", g, err)
		}
		table.CloseConn(g.Conn)
	}
	table.Unregister("c", Self(10911))
	if after := dump(table.mu.r); after != before {
		t.Errorf("the table was\n%sand is\n%s", before, after)
	}
	if _, err := table.Register(reg("a", 1, "h:2", 1, "t", "u")); err != nil {
		t.Error("a slave elsewhere:", err)
	}
}
