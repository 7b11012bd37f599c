package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// parts is a backend over real tables and a pretended publisher and popper.
type parts struct {
	live *config.Live[config.Broker]
	*Backend
	topics   *topic.Table
	groups   *group.Table
	registry *clients.Registry
	publish  fakePublisher
	pop      fakePopper
	released []*longpoll.Peer
}

type fakePublisher struct {
	sent    []string
	batches []int
	err     error
}

func (f *fakePublisher) Send(r *publish.Request, done func(storage.Placed, error)) {
	f.sent = append(f.sent, fmt.Sprint(r.Message.Topic, " ", r.Message.QueueID, " ", r.MaxReconsumeTimes, " ", r.DefaultTopic))
	r.UniqKey = append(r.UniqKey[:0], "key"...)
	done(storage.Placed{QueueOffset: 7, QueueID: r.Message.QueueID}, f.err)
}

func (f *fakePublisher) SendBatch(r *publish.Request, ms []*message.Message, done func([]storage.Placed, error)) {
	f.batches = append(f.batches, len(ms))
	if len(r.Message.Body) != 0 || r.Message.Properties != "" {
		f.err = errors.New("the head of a batch has a body or properties")
	}
	if f.err != nil {
		done(nil, f.err)
		return
	}
	placed := make([]storage.Placed, len(ms))
	placed[0].QueueOffset = 40
	done(placed, nil)
}

type fakePopper struct {
	request pop.Request
	result  pop.Result
	err     error
	acked   []receipt.Handle
}

func (f *fakePopper) Pop(r pop.Request, done func(pop.Result, error)) {
	f.request = r
	done(f.result, f.err)
}

func (f *fakePopper) AckBatch(_, _ string, hs []receipt.Handle, done func([]error)) {
	f.acked = append(f.acked, hs...)
	errs := make([]error, len(hs))
	for i := range errs {
		errs[i] = f.err
	}
	done(errs)
}

func (f *fakePopper) ChangeInvisible(_, _ string, h receipt.Handle, invisible int64, suspend bool, done func(receipt.Handle, error)) {
	h.InvisibleTime = invisible
	done(h, f.err)
}

func (f *fakePopper) Forward(_, _ string, _ receipt.Handle, done func(error)) { done(f.err) }

func newParts(t *testing.T) *parts {
	t.Helper()
	live := config.NewLive(config.DefaultBroker())
	p := &parts{live: live}
	var err error
	if p.topics, err = topic.Open(topic.Options{Config: live}); err != nil {
		t.Fatal(err)
	}
	if p.groups, err = group.Open(group.Options{Config: live}); err != nil {
		t.Fatal(err)
	}
	p.registry = clients.New(clients.Options{Config: live, Topics: p.topics, Groups: p.groups})
	p.Backend = New(Options{Name: "broker-a", Permission: func() int32 { return live.Get().BrokerPermission }, Topics: p.topics, Groups: p.groups, Publish: &p.publish, Pop: &p.pop, Clients: p.registry,
		Release: func(w *longpoll.Peer) { p.released = append(p.released, w) }})
	return p
}

func TestRoute(t *testing.T) {
	p := newParts(t)
	ctx := context.Background()
	if _, err := p.Route(ctx, "orders"); !errors.Is(err, proxy.ErrTopicNotFound) {
		t.Errorf("unknown topic: %v", err)
	}
	cfg := topic.New("orders")
	cfg.ReadQueues, cfg.WriteQueues, cfg.Attributes = 8, 4, map[string]string{"+message.type": "FIFO"}
	if err := p.topics.Put(cfg); err != nil {
		t.Fatal(err)
	}
	r, err := p.Route(ctx, "orders")
	if err != nil || r.Topic != "orders" || r.Kind != proxy.KindFIFO || r.Brokers[0] != (proxy.BrokerQueues{Broker: "broker-a", Read: 8, Write: 4, Readable: true, Writable: true}) {
		t.Errorf("route %+v, %v", r, err)
	}
	if again, _ := p.Route(ctx, "orders"); again != r {
		t.Error("the route was made again for the same configuration")
	}
	for permission, want := range map[string][2]bool{"4": {true, false}, "2": {false, true}, "6": {true, true}} {
		if err := p.live.Change(map[string]string{"brokerPermission": permission}); err != nil {
			t.Fatal(err)
		}
		if r, _ = p.Route(ctx, "orders"); r.Brokers[0].Readable != want[0] || r.Brokers[0].Writable != want[1] {
			t.Errorf("route of a broker with permission %s: %+v", permission, r)
		}
	}
	if err := p.live.Change(map[string]string{"brokerPermission": "6"}); err != nil {
		t.Fatal(err)
	}
	cfg = cfg.Clone()
	cfg.Perm = topic.PermRead
	if err := p.topics.Put(cfg); err != nil {
		t.Fatal(err)
	}
	if r, _ = p.Route(ctx, "orders"); r.Brokers[0].Writable || !r.Brokers[0].Readable {
		t.Errorf("route after a change of permission: %+v", r)
	}
	if err := p.topics.Delete("orders"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Route(ctx, "orders"); !errors.Is(err, proxy.ErrTopicNotFound) {
		t.Errorf("deleted topic: %v", err)
	}
}

func TestGroup(t *testing.T) {
	p := newParts(t)
	g, err := p.Group(context.Background(), "fresh")
	if err != nil || g.FIFO || g.MaxAttempts != proxy.DefaultMaxAttempts || fmt.Sprint(g.Backoff) != fmt.Sprint(proxy.DefaultBackoff) || g.LiteQuota != 2000 {
		t.Errorf("a group that nobody made: %+v, %v", g, err)
	}
	if _, known := p.groups.Get("fresh"); known {
		t.Error("asking made the group")
	}
	cfg := group.New("ordered")
	cfg.ConsumeOrderly, cfg.RetryMaxTimes = true, 3
	cfg.Retry = group.RetryPolicy{Exponential: true, Initial: 5000, Max: 7_200_000, Multiplier: 2}
	if err := p.groups.Put(cfg); err != nil {
		t.Fatal(err)
	}
	g, _ = p.Group(context.Background(), "ordered")
	if !g.FIFO || g.MaxAttempts != 4 || g.Backoff.Next != nil || g.Backoff.Initial.Seconds() != 5 || g.Backoff.Max.Hours() != 2 || g.Backoff.Multiplier != 2 {
		t.Errorf("ordered group: %+v", g)
	}
}

func TestSend(t *testing.T) {
	p := newParts(t)
	send := func(n int) (sent proxy.Sent, err error) {
		ms := make([]*message.Message, n)
		for i := range ms {
			ms[i] = &message.Message{Topic: "orders", QueueID: 3, Body: []byte("b"), Properties: "k\x01v\x02"}
		}
		p.Send("broker-a", ms, func(s proxy.Sent, e error) { sent, err = s, e })
		return
	}
	for range 3 { // the pooled parts come back clean
		if sent, err := send(1); err != nil || sent != (proxy.Sent{Offset: 7, QueueID: 3}) {
			t.Errorf("sent %+v, %v", sent, err)
		}
	}
	if got := p.publish.sent[2]; got != "orders 3 -1 " {
		t.Errorf("asked publish for %q", got)
	}
	if sent, err := send(4); err != nil || sent.Offset != 40 || len(p.publish.batches) != 1 || p.publish.batches[0] != 4 {
		t.Errorf("batch: %+v, %v", sent, err)
	}
	for _, c := range []struct{ of, want error }{
		{publish.ErrTimer, proxy.ErrDeliveryTime}, {publish.ErrTimersOff, proxy.ErrUnsupported}, {publish.ErrTransaction, proxy.ErrForbidden}, {publish.ErrTopicNotFound, proxy.ErrTopicNotFound},
		{publish.ErrBodyTooLarge, proxy.ErrMessageTooLarge}, {publish.ErrNotWritable, proxy.ErrForbidden}, {storage.ErrBusy, proxy.ErrBusy},
		{storage.ErrWrite, proxy.ErrBusy},
	} {
		for _, n := range []int{1, 2} {
			p.publish.err = fmt.Errorf("send: %w", c.of)
			_, err := send(n)
			if !errors.Is(err, c.want) || !errors.Is(err, c.of) || err.Error() != p.publish.err.Error() {
				t.Errorf("%v came as %v", c.of, err)
			}
		}
	}
	unknown := errors.New("disk on fire")
	p.publish.err = unknown
	if _, err := send(1); err != unknown {
		t.Errorf("an unknown error came as %v", err)
	}
}

func TestPop(t *testing.T) {
	p := newParts(t)
	var waiter longpoll.Peer
	var got proxy.Popped
	var err error
	ask := func() {
		p.Pop(proxy.PopRequest{Group: "g", Topic: "t", QueueID: -1, Max: 5, InvisibleTime: 30e9, PollTime: 1e9, Order: true, OnePerGroup: true,
			AttemptID: "a", Holder: "c", AutoRenew: true, Waiter: &waiter}, func(q proxy.Popped, e error) { got, err = q, e })
	}
	p.pop.result = pop.Result{Status: pop.Found, PopTime: 1000, Invisible: 30000, Order: true, Batches: []pop.Batch{{QueueID: 2, Records: make([]storage.Record, 2)}}}
	ask()
	want := pop.Request{Group: "g", Topic: "t", QueueID: -1, Max: 5, Invisible: 30000, PollTime: 1e9, InitMode: pop.InitMax, Order: true, OnePerGroup: true,
		AttemptID: "a", Holder: "c", AutoRenew: true, Peer: &waiter}
	if fmt.Sprintf("%+v", p.pop.request) != fmt.Sprintf("%+v", want) {
		t.Errorf("asked POP for %+v", p.pop.request)
	}
	if err != nil || got.Status != proxy.PopFound || got.Broker != "broker-a" || got.PopTime != 1000 || got.InvisibleTime != 30000 || got.ReviveQueue == 0 || len(got.Batches) != 1 || got.Release == nil {
		t.Errorf("got %+v, %v", got, err)
	}
	got.Release()
	for status, want := range map[pop.Status]proxy.PopStatus{pop.PollingTimeout: proxy.PopNoNew, pop.PollingFull: proxy.PopPollingFull, pop.Throttled: proxy.PopThrottled} {
		p.pop.result = pop.Result{Status: status}
		if ask(); got.Status != want {
			t.Errorf("%v came as %v", status, got.Status)
		}
	}
	p.pop.err = pop.ErrGroupDisabled
	if ask(); !errors.Is(err, proxy.ErrForbidden) {
		t.Errorf("disabled group: %v", err)
	}
	p.Withdraw(proxy.PopRequest{Waiter: &waiter})
	if len(p.released) != 1 || p.released[0] != &waiter {
		t.Errorf("released %v", p.released)
	}
}

func TestAckSortsOutForeignHandles(t *testing.T) {
	p := newParts(t)
	own, foreign := receipt.Handle{Broker: "broker-a", Offset: 1}, receipt.Handle{Broker: "broker-b", Offset: 2}
	var errs []error
	take := func(e []error) { errs = e }
	p.Ack("g", "t", []receipt.Handle{foreign, own, foreign}, take)
	if len(p.pop.acked) != 1 || p.pop.acked[0] != own || !errors.Is(errs[0], proxy.ErrIllegalHandle) || errs[1] != nil || !errors.Is(errs[2], proxy.ErrIllegalHandle) {
		t.Errorf("acked %v, errors %v", p.pop.acked, errs)
	}
	p.Ack("g", "t", []receipt.Handle{foreign}, take)
	if len(errs) != 1 || !errors.Is(errs[0], proxy.ErrIllegalHandle) {
		t.Errorf("errors %v", errs)
	}
	for of, want := range map[error]error{pop.ErrStale: proxy.ErrStaleHandle, pop.ErrExpired: proxy.ErrExpiredHandle, pop.ErrIllegal: proxy.ErrIllegalHandle} {
		p.pop.err = of
		if p.Ack("g", "t", []receipt.Handle{own}, take); !errors.Is(errs[0], want) {
			t.Errorf("ack: %v came as %v", of, errs[0])
		}
		var err error
		p.ChangeInvisible(proxy.ChangeRequest{Handle: own}, func(_ receipt.Handle, e error) { err = e })
		if !errors.Is(err, want) {
			t.Errorf("change: %v came as %v", of, err)
		}
		p.DeadLetter("g", "t", own, func(e error) { err = e })
		if !errors.Is(err, want) {
			t.Errorf("dead letter: %v came as %v", of, err)
		}
	}
	var err error
	if p.ChangeInvisible(proxy.ChangeRequest{Handle: foreign}, func(_ receipt.Handle, e error) { err = e }); !errors.Is(err, proxy.ErrIllegalHandle) {
		t.Errorf("change: %v", err)
	}
	if p.DeadLetter("g", "t", foreign, func(e error) { err = e }); !errors.Is(err, proxy.ErrIllegalHandle) {
		t.Errorf("dead letter: %v", err)
	}
}

// R124: clients of gRPC stand in the broker's tables like those of Remoting.
func TestMembers(t *testing.T) {
	p := newParts(t)
	addr := netip.MustParseAddrPort("10.1.2.3:4567")
	consumer := &proxy.Client{ID: "c", Language: "GOLANG", Version: "5.1.4", Remote: addr, Settings: proxy.Settings{
		Kind: proxy.PushConsumer, Group: "g", Since: 5, Subscriptions: []proxy.Subscription{{Topic: "orders", Expression: "a||b"}}}}
	producer := &proxy.Client{ID: "p", Language: "JAVA", Version: "5.0.7", Remote: addr, Settings: proxy.Settings{Kind: proxy.Producer, Topics: []string{"orders", "other"}}}
	for _, c := range []*proxy.Client{consumer, producer, consumer} {
		if err := p.Join(c); err != nil {
			t.Fatal(err)
		}
	}
	g, known := p.registry.Group("g")
	if !known || g.Type != clients.ConsumePassively || g.Model != clients.Clustering || len(g.Members) != 1 {
		t.Fatalf("group %+v, %v", g, known)
	}
	m := g.Members[0]
	if m.ID != "c" || m.Language != byte(remoting.LanguageGo) || m.Version != 441 || m.Channel.RemoteAddr() != addr {
		t.Errorf("member %+v", m)
	}
	sub, known := p.registry.Subscription("g", "orders")
	if !known || sub.Expression != "a||b" || sub.Kind != "TAG" || fmt.Sprint(sub.Tags) != "[a b]" || len(sub.Codes) != 2 {
		t.Errorf("subscription %+v, %v", sub, known)
	}
	if _, known := p.topics.Get("%RETRY%g"); !known {
		t.Error("the group has no retry topic")
	}
	if !p.registry.Present("c") || !p.registry.Present("p") || len(p.registry.Producers("other")) != 1 {
		t.Error("not present")
	}

	// A heartbeat that says nothing of subscriptions leaves them alone.
	guess := &proxy.Client{ID: "c", Remote: addr, Guessed: true, Settings: proxy.Settings{Kind: proxy.PushConsumer, Group: "g"}}
	if err := p.Join(guess); err != nil {
		t.Fatal(err)
	}
	if _, known := p.registry.Subscription("g", "orders"); !known {
		t.Error("the subscription is gone")
	}

	// The same client from elsewhere is one member, not two.
	moved := *consumer
	moved.Remote = netip.MustParseAddrPort("10.1.2.3:9999")
	if err := p.Join(&moved); err != nil {
		t.Fatal(err)
	}
	if g, _ := p.registry.Group("g"); len(g.Members) != 1 || g.Members[0].Channel.RemoteAddr() != moved.Remote {
		t.Errorf("members %+v", g.Members)
	}

	p.Leave(&moved)
	p.Leave(&moved)
	p.Leave(producer)
	if _, known := p.registry.Group("g"); known || p.registry.Present("c") || p.registry.Present("p") {
		t.Error("still there")
	}
	if err := p.Join(consumer); err != nil || !p.registry.Present("c") {
		t.Errorf("it can't come back: %v", err)
	}
}

func TestKindsOfConsumers(t *testing.T) {
	for kind, want := range map[proxy.ClientKind]string{
		proxy.PushConsumer: "CONSUME_PASSIVELY CLUSTERING", proxy.SimpleConsumer: "CONSUME_ACTIVELY CLUSTERING", proxy.PullConsumer: "CONSUME_ACTIVELY CLUSTERING",
		proxy.LitePushConsumer: "CONSUME_PASSIVELY LITE_SELECTIVE", proxy.LiteSimpleConsumer: "CONSUME_ACTIVELY LITE_SELECTIVE",
	} {
		h := heartbeat(&proxy.Client{Settings: proxy.Settings{Kind: kind, Group: "g"}}, &channel{})
		if got := h.Consumers[0].Type + " " + h.Consumers[0].Model; got != want {
			t.Errorf("%d: %s, want %s", kind, got, want)
		}
	}
}

func TestVersionsAndLanguages(t *testing.T) {
	for text, want := range map[string]int32{"5.0.0": 413, "5.1.4": 441, "5.3.1": remoting.Version5_3_1, "5.5.0": remoting.Version5_5_0,
		"5.0.8-SNAPSHOT": 429, "": remoting.Version5_5_0, "x.y": remoting.Version5_5_0, "4.9.4": remoting.Version5_5_0, "5": remoting.Version5_5_0} {
		if got := versionOf(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for name, want := range map[string]remoting.Language{"JAVA": remoting.LanguageJava, "GOLANG": remoting.LanguageGo, "DOT_NET": remoting.LanguageDotnet,
		"PYTHON": remoting.LanguagePython, "RUST": remoting.LanguageRust, "NODE_JS": remoting.LanguageNodeJS, "CPP": remoting.LanguageCPP, "KOTLIN": remoting.LanguageOther} {
		if got := languageOf(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
