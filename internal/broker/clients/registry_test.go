package clients

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
)

// fakeChannel counts what its client is told.
type fakeChannel struct {
	mu      sync.Mutex
	name    string
	changed []string
	closed  bool
}

func (c *fakeChannel) RemoteAddr() netip.AddrPort { return netip.MustParseAddrPort("10.0.0.1:1000") }
func (c *fakeChannel) ConsumersChanged(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = append(c.changed, group)
}
func (c *fakeChannel) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
func (c *fakeChannel) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.changed)
}

func newRegistry(t testing.TB, o Options) *Registry {
	t.Helper()
	o.Config = config.NewLive(config.DefaultBroker())
	var err error
	if o.Topics, err = topic.Open(topic.Options{Config: o.Config}); err != nil {
		t.Fatal(err)
	}
	if o.Groups, err = group.Open(group.Options{Config: o.Config}); err != nil {
		t.Fatal(err)
	}
	return New(o)
}

func beat(r *Registry, ch *fakeChannel, id, group string, version int64, topics ...string) Result {
	h := Heartbeat{Client: Client{ID: id, Channel: ch}, Consumers: []Consumer{{Group: group, Type: ConsumePassively, Model: Clustering}}}
	for _, name := range topics {
		h.Consumers[0].Subscriptions = append(h.Consumers[0].Subscriptions, Subscription{Topic: name, Expression: "*", Version: version})
	}
	var result Result
	r.Heartbeat(h, func(got Result) { result = got })
	return result
}

func TestGroupComesAndGoes(t *testing.T) {
	var gone, announced []string
	r := newRegistry(t, Options{
		Announce: func(topics []string, done func()) { announced = append(announced, topics...); done() },
		Events:   Events{ClientGone: func(id string) { gone = append(gone, id) }},
	})
	a, b := &fakeChannel{name: "a"}, &fakeChannel{name: "b"}
	beat(r, a, "a", "g", 1, "t")
	if !slices.Equal(announced, []string{"%RETRY%g"}) {
		t.Fatalf("announced before the answer: %v", announced)
	}
	if _, ok := r.o.Groups.Get("g"); !ok {
		t.Fatal("the group was not created")
	}
	beat(r, b, "b", "g", 1, "t")
	if got := r.ConsumerIDs("g"); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatal(got)
	}
	if a.told() != 2 || b.told() != 1 {
		t.Fatalf("told %d and %d times", a.told(), b.told())
	}
	beat(r, b, "b", "g", 1, "t") // nothing new
	if a.told() != 2 || len(announced) != 1 {
		t.Fatalf("told %d times, announced %v", a.told(), announced)
	}
	beat(r, b, "b", "g", 2, "t", "u") // a new topic
	if a.told() != 3 {
		t.Fatalf("told %d times", a.told())
	}
	if got := r.GroupsOf("u"); !slices.Equal(got, []string{"g"}) {
		t.Fatal(got)
	}
	r.CloseChannel(b)
	if a.told() != 4 || r.Present("b") || !r.Present("a") {
		t.Fatalf("told %d times", a.told())
	}
	beat(r, b, "b", "g", 3, "t") // was still queued when the channel closed
	if got := r.ConsumerIDs("g"); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("a closed channel came back: %v", got)
	}
	r.Unregister(a, "", "g")
	if _, ok := r.Group("g"); ok {
		t.Fatal("a group without members is still there")
	}
	if !slices.Equal(gone, []string{"b", "a"}) {
		t.Fatal(gone)
	}
}

func TestSubscriptionsOfMembers(t *testing.T) {
	r := newRegistry(t, Options{})
	send := func(ch *fakeChannel, id, expr string, version int64) {
		r.Heartbeat(Heartbeat{Client: Client{ID: id, Channel: ch}, Consumers: []Consumer{{Group: "g", Type: ConsumePop, Model: Clustering,
			Subscriptions: []Subscription{{Topic: "t", Expression: expr, Version: version}}}}}, func(Result) {})
	}
	a, b := &fakeChannel{}, &fakeChannel{}
	send(a, "a", "red", 10)
	send(b, "b", "blue", 20)
	if s, _ := r.Subscription("g", "t"); s.Expression != "blue" {
		t.Fatalf("the newest subscription counts, not %s", s.Expression)
	}
	send(a, "a", "red", 10)
	if s, _ := r.Subscription("g", "t"); s.Expression != "blue" {
		t.Fatalf("an older version replaced a newer one: %s", s.Expression)
	}
	r.Passing("g", Subscription{Topic: "t", Expression: "green"})
	var got []string
	for _, s := range r.Subscriptions("g", "t") {
		got = append(got, s.Expression)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"blue", "green", "red"}) {
		t.Fatal(got)
	}
	if s, ok := r.Subscription("other", "t"); ok {
		t.Fatal(s)
	}
	r.Passing("other", Subscription{Topic: "t", Expression: "x"})
	if s, ok := r.Subscription("other", "t"); !ok || s.Expression != "x" {
		t.Fatal("a subscription that came with a request is not known")
	}
}

// TestConflictsAreNamed is R063: two members of a group that want different things are
// noticed when the second comes, named, and forgotten when they agree.
func TestConflictsAreNamed(t *testing.T) {
	var seen []string
	r := newRegistry(t, Options{Events: Events{Conflict: func(c Conflict) { seen = append(seen, c.String()) }}})
	send := func(ch *fakeChannel, id string, version int64, wants ...string) {
		c := Consumer{Group: "g", Type: ConsumePassively, Model: Clustering, Subscriptions: []Subscription{{Topic: "%RETRY%g", Expression: "*"}}}
		for i := 0; i < len(wants); i += 2 {
			c.Subscriptions = append(c.Subscriptions, Subscription{Topic: wants[i], Expression: wants[i+1], Version: version})
		}
		r.Heartbeat(Heartbeat{Client: Client{ID: id, Channel: ch}, Consumers: []Consumer{c}}, func(Result) {})
	}
	a, b, c := &fakeChannel{}, &fakeChannel{}, &fakeChannel{}
	send(a, "a", 1, "t", "red")
	send(b, "b", 1, "t", "red")
	if len(seen) != 0 || len(r.Conflicts("g")) != 0 {
		t.Fatalf("they agree: %v", seen)
	}
	send(c, "c", 1, "t", "blue", "u", "*")
	if len(seen) != 1 || !strings.Contains(seen[0], `topic t`) || !strings.Contains(seen[0], `"red"`) || !strings.Contains(seen[0], `client c to "blue"`) {
		t.Fatalf("%v", seen)
	}
	all := r.Conflicts("g")
	if len(all) != 2 || all[0].Topic != "t" || all[1].Topic != "u" || all[1].OneWants != "nothing" {
		t.Fatalf("%v", all)
	}
	send(c, "c", 1, "t", "blue", "u", "*") // says the same again
	if len(seen) != 1 {
		t.Fatalf("said again: %v", seen)
	}
	send(c, "c", 2, "t", "red")
	if len(r.Conflicts("g")) != 0 || len(seen) != 1 {
		t.Fatalf("they agree again: %v, %v", r.Conflicts("g"), seen)
	}
	if r.Conflicts("nobody") != nil {
		t.Fatal("of nobody")
	}
}

func TestSecondHeartbeatForm(t *testing.T) {
	r := newRegistry(t, Options{})
	ch := &fakeChannel{}
	send := func(fingerprint int32, without bool) (needed bool) {
		h := Heartbeat{Client: Client{ID: "a", Channel: ch}, Fingerprint: fingerprint, WithoutSubscriptions: without,
			Consumers: []Consumer{{Group: "g", Type: ConsumePassively, Model: Clustering}}}
		if !without {
			h.Consumers[0].Subscriptions = []Subscription{{Topic: "t", Expression: "*", Version: 1}}
		}
		r.Heartbeat(h, func(res Result) { needed = res.SubscriptionsNeeded })
		return needed
	}
	if !send(7, true) {
		t.Fatal("the registry has never seen the subscriptions and does not ask for them")
	}
	if send(7, false) || send(7, true) {
		t.Fatal("asks for what it has")
	}
	if _, ok := r.Subscription("g", "t"); !ok {
		t.Fatal("a refresh dropped the subscriptions")
	}
	if !send(8, true) {
		t.Fatal("does not notice another fingerprint")
	}
	if !send(0, false) {
		t.Fatal("the first form is always answered with true")
	}
}

func TestSilenceExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		a, b := &fakeChannel{}, &fakeChannel{}
		beat(r, a, "a", "g", 1, "t")
		beat(r, b, "b", "g", 1, "t")
		r.Heartbeat(Heartbeat{Client: Client{ID: "p", Channel: b}, Producers: []string{"pg"}}, func(Result) {})
		for range 5 {
			time.Sleep(30 * time.Second)
			beat(r, a, "a", "g", 1, "t")
		}
		synctest.Wait()
		if got := r.ConsumerIDs("g"); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("after 150 s of b's silence: %v", got)
		}
		if !b.closed || a.closed || len(r.Producers("pg")) != 0 {
			t.Fatal("the silent channel, and only that, is closed")
		}
		cancel()
		<-done
	})
}

func TestLargeGroupsCollectNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		all := make([]*fakeChannel, 2000)
		for i := range all {
			all[i] = &fakeChannel{}
			beat(r, all[i], fmt.Sprint(i), "g", 1, "t")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		total := 0
		for i, ch := range all {
			if ch.told() == 0 {
				t.Fatalf("client %d never heard of the others", i)
			}
			total += ch.told()
		}
		if total > 20*len(all) {
			t.Fatalf("%d notices for %d clients", total, len(all))
		}
		cancel()
		<-done
	})
}

// Ten thousand clients in as many groups come and go: closing one does not look at all.
func TestNothingIsLeftOfManyClients(t *testing.T) {
	r := newRegistry(t, Options{})
	all := make([]*fakeChannel, 10_000)
	for i := range all {
		all[i] = &fakeChannel{}
		id := fmt.Sprint(i)
		beat(r, all[i], id, "g"+id, 1, "t")
		r.Heartbeat(Heartbeat{Client: Client{ID: id, Channel: all[i]}, Producers: []string{"p" + id, "shared"}}, func(Result) {})
	}
	if n := len(r.Producers("shared")); n != len(all) {
		t.Fatal(n)
	}
	for _, ch := range all {
		r.CloseChannel(ch)
	}
	if len(r.mu.consumers)+len(r.mu.producers)+len(r.mu.producing)+len(r.mu.present)+len(r.mu.joined)+len(r.mu.pending) != 0 {
		t.Fatal("something is left", len(r.mu.consumers), len(r.mu.producers), len(r.mu.present), len(r.mu.joined), len(r.mu.pending))
	}
}

// TestProducerOfAnID: the newest heartbeat says where a client is; it is gone with its last
// group, and a connection that closes late takes nothing from its successor.
func TestProducerOfAnID(t *testing.T) {
	r := newRegistry(t, Options{})
	old, next := &fakeChannel{name: "old"}, &fakeChannel{name: "next"}
	beat := func(ch *fakeChannel, id string) {
		r.Heartbeat(Heartbeat{Client: Client{ID: id, Channel: ch}, Producers: []string{"p", "q"}}, func(Result) {})
	}
	where := func(id string) string {
		c, ok := r.Producer(id)
		if !ok {
			return "nowhere"
		}
		return c.Channel.(*fakeChannel).name
	}
	beat(old, "c")
	beat(next, "c")
	r.CloseChannel(old)
	if got := where("c"); got != "next" {
		t.Errorf("after the old connection has closed: %s", got)
	}
	r.Unregister(next, "p", "")
	if got := where("c"); got != "next" {
		t.Errorf("with one group left: %s", got)
	}
	beat(next, "d")
	if c, d := where("c"), where("d"); c != "nowhere" || d != "next" {
		t.Errorf("under another name: %s, %s", c, d)
	}
	r.Unregister(next, "p", "")
	r.Unregister(next, "q", "")
	if got := where("d"); got != "nowhere" {
		t.Errorf("without a group: %s", got)
	}
}

func BenchmarkTenThousandClients(b *testing.B) {
	r := newRegistry(b, Options{})
	all := make([]*fakeChannel, 10_000)
	for i := range all {
		all[i] = &fakeChannel{}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i % len(all)
		beat(r, all[n], "client", fmt.Sprint("g", n%100), 1, "t")
	}
}

// TestHalfAMillionGroups: to take one client out of all the groups that it says it is in
// must not take half a million looks at half a million names, under the lock of all.
func TestHalfAMillionGroups(t *testing.T) {
	r := newRegistry(t, Options{})
	ch := &fakeChannel{}
	h := Heartbeat{Client: Client{ID: "a", Channel: ch}}
	for i := range 500_000 {
		h.Producers = append(h.Producers, strconv.Itoa(i))
	}
	r.Heartbeat(h, func(Result) {})
	if n := len(r.Producers("499999")); n != 1 {
		t.Fatal(n)
	}
	r.CloseChannel(ch)
	if n := len(r.Producers("499999")) + len(r.mu.producers) + len(r.mu.joined) + len(r.mu.present); n != 0 {
		t.Fatal(n)
	}
}
