package proxy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		topic, message string
		takes          bool
	}{
		{"NORMAL", "NORMAL", true}, {"NORMAL", "FIFO", false}, {"", "NORMAL", true}, {"FIFO", "FIFO", true}, {"FIFO", "NORMAL", false},
		{"MIXED", "NORMAL", true}, {"MIXED", "DELAY", true}, {"MIXED", "TRANSACTION", true}, {"MIXED", "UNSPECIFIED", false},
		{"UNSPECIFIED", "NORMAL", false}, {"nonsense", "NORMAL", false}, {"PRIORITY", "PRIORITY", true}, {"LITE", "LITE", true},
	} {
		if got := KindNamed(c.topic).Takes(KindNamed(c.message)); got != c.takes {
			t.Errorf("a topic of %q takes %q: %v", c.topic, c.message, got)
		}
	}
	for k := KindUnspecified; k <= KindMixed; k++ {
		if KindNamed(k.String()) != k {
			t.Errorf("%d is called %s", k, k)
		}
	}
}

func TestRouteCountsQueues(t *testing.T) {
	r := &Route{Topic: "t", Brokers: []BrokerQueues{
		{Broker: "a", Read: 4, Write: 2, Readable: true, Writable: true},
		{Broker: "b", Read: 4, Write: 4, Readable: true},
		{Broker: "c", Read: 0, Write: 3, Readable: true, Writable: true},
	}}
	if r.Writable() != 5 {
		t.Errorf("%d writable queues", r.Writable())
	}
	got := ""
	for i := range 6 {
		broker, queue := r.writeQueue(i)
		got += fmt.Sprint(broker, queue, " ")
	}
	if got != "a0 a1 c0 c1 c2 -1 " {
		t.Errorf("writable queues %s", got)
	}
	got = ""
	for turn := range 4 {
		got += r.readBroker("", turn)
	}
	if got += r.readBroker("b", 0) + r.readBroker("c", 0); got != "ababba" {
		t.Errorf("brokers read from: %s", got)
	}
	if got := (&Route{}).readBroker("a", 1); got != "" {
		t.Errorf("no broker reads, got %s", got)
	}
}

// none is a Backend that only takes notes.
type none struct {
	sent   []string
	pops   []PopRequest
	joined map[string]int
	left   []string
	lites  []string // clients that said something of lite topics
	onJoin func()   // what happens while the broker hears of a client

	withdrawn []*longpoll.Peer
}

func (n *none) Route(context.Context, string) (*Route, error) { return nil, ErrTopicNotFound }
func (n *none) Group(context.Context, string) (Group, error)  { return Group{}, nil }
func (n *none) Send(broker string, ms []*message.Message, done func(Sent, error)) {
	for _, m := range ms {
		n.sent = append(n.sent, fmt.Sprint(broker, " ", m.Topic, " ", m.QueueID))
	}
	done(Sent{}, nil)
}
func (n *none) Pop(q PopRequest, done func(Popped, error)) {
	n.pops = append(n.pops, q)
	done(Popped{}, nil)
}
func (n *none) Withdraw(q PopRequest)                                      { n.withdrawn = append(n.withdrawn, q.Waiter) }
func (n *none) Ack(string, string, []receipt.Handle, func([]error))        {}
func (n *none) ChangeInvisible(ChangeRequest, func(receipt.Handle, error)) {}
func (n *none) DeadLetter(string, string, receipt.Handle, func(error))     {}
func (n *none) Recall(string, string, func(string, error))                 {}
func (n *none) Join(c *Client) error {
	if n.joined[c.ID]++; n.onJoin != nil {
		n.onJoin()
	}
	return nil
}
func (n *none) End(_ EndRequest, done func(error)) { done(nil) }

func (n *none) Leave(c *Client)                   { n.left = append(n.left, c.ID) }
func (n *none) SyncLite(s LiteSubscription) error { n.lites = append(n.lites, s.ClientID); return nil }

func newProxy() (*Proxy, *none) {
	n := &none{joined: map[string]int{}}
	return New(Options{Backend: n}), n
}

func TestSendChoosesQueues(t *testing.T) {
	p, n := newProxy()
	r := &Route{Topic: "t", Brokers: []BrokerQueues{{Broker: "a", Read: 3, Write: 3, Readable: true, Writable: true}}}
	send := func(group string, count int) {
		ms := make([]*message.Message, count)
		for i := range ms {
			ms[i] = &message.Message{}
		}
		p.Send(r, group, ms, func(_ Sent, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		send("", 1)
	}
	send("g", 2) // a batch goes round, whatever its group
	if got := fmt.Sprint(n.sent); got != "[a t 0 a t 1 a t 2 a t 0 a t 1 a t 1]" {
		t.Errorf("sent %s", got)
	}
	n.sent = nil
	for range 5 {
		send("g", 1)
	}
	for _, s := range n.sent[1:] {
		if s != n.sent[0] {
			t.Errorf("a group went to %v", n.sent)
		}
	}
	p.Send(&Route{Topic: "t"}, "", []*message.Message{{}}, func(_ Sent, err error) {
		if !errors.Is(err, ErrNoWritableQueue) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReceiveChoosesBroker(t *testing.T) {
	p, n := newProxy()
	r := &Route{Topic: "t", Brokers: []BrokerQueues{{Broker: "a", Read: 1, Readable: true}, {Broker: "b", Read: 1, Readable: true}}}
	for range 2 {
		p.Receive(r, PopRequest{}, func(Popped, error) {})
	}
	withdraw := p.Receive(r, PopRequest{Broker: "b"}, func(Popped, error) {})
	if withdraw(); len(n.withdrawn) != 1 || n.withdrawn[0] != n.pops[2].Waiter || n.pops[1].Waiter == n.pops[2].Waiter {
		t.Errorf("withdrawn %v of %+v", n.withdrawn, n.pops)
	}
	if n.pops[0].Broker == n.pops[1].Broker || n.pops[2].Broker != "b" || n.pops[0].Topic != "t" {
		t.Errorf("pops %+v", n.pops)
	}
	p.Receive(&Route{}, PopRequest{}, func(_ Popped, err error) {
		if !errors.Is(err, ErrNoReadableQueue) {
			t.Errorf("got %v", err)
		}
	})
}

type stream struct{ Commander }

func TestClientsComeAndGo(t *testing.T) {
	p, n := newProxy()
	one, two := &stream{}, &stream{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(p.Join(&Client{ID: "c", Stream: one}))
	must(p.Join(&Client{ID: "c", Stream: two}))
	p.Hangup("c", one)
	if p.Client("c") == nil || len(n.left) != 0 {
		t.Error("the end of a replaced stream took the client away")
	}
	p.Hangup("c", two)
	if c := p.Client("c"); c == nil || c.Stream != nil || len(n.left) != 1 {
		t.Errorf("after its stream: %+v, left %v", c, n.left)
	}
	if c, err := p.Beat("c"); c == nil || err != nil || n.joined["c"] != 3 {
		t.Errorf("beat: %v, %v", c, err)
	}
	if c, _ := p.Beat("d"); c != nil || n.joined["d"] != 0 {
		t.Errorf("a stranger's beat: %v", c)
	}
	if p.Leave("d") != nil || p.Leave("c") == nil || p.Leave("c") != nil || len(n.left) != 2 {
		t.Errorf("left %v", n.left)
	}
}

// TestLeaveWhileTheBrokerIsTold: whoever leaves between the proxy's decision to tell the
// broker of it and that telling must not stay there.
func TestLeaveWhileTheBrokerIsTold(t *testing.T) {
	s := &stream{}
	for name, leave := range map[string]func(*Proxy){
		"termination":   func(p *Proxy) { p.Leave("c") },
		"end of stream": func(p *Proxy) { p.Hangup("c", s) },
	} {
		p, n := newProxy()
		if err := p.Join(&Client{ID: "c", Stream: s}); err != nil {
			t.Fatal(err)
		}
		var events []string
		n.onJoin = func() {
			n.onJoin = nil
			leave(p)
			events, n.left = n.left, nil
		}
		if _, err := p.Beat("c"); err != nil {
			t.Fatal(err)
		}
		if len(events) != 1 || len(n.left) != 1 {
			t.Errorf("%s: the broker heard %v before and %v after it was told that the client is there", name, events, n.left)
		}
	}
}

// TestSilentClientsLeaveTheBroker: a client that was there by its heartbeats alone is gone
// for the broker too when they end.
func TestSilentClientsLeaveTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, n := newProxy()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		if err := p.Join(&Client{ID: "guessed", Guessed: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(forgetAfter + beatEvery)
		cancel()
		<-done
		if fmt.Sprint(n.left) != "[guessed]" {
			t.Errorf("left: %v", n.left)
		}
	})
}

func TestSweep(t *testing.T) {
	p, _ := newProxy()
	for _, c := range []*Client{{ID: "open", Stream: &stream{}}, {ID: "beats"}, {ID: "silent"}} {
		if err := p.Join(c); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Add(forgetAfter)
	p.clients.mu.byID["beats"].at = now.Add(-time.Second)
	open, gone := p.sweep(now.Add(time.Second))
	if len(gone) != 1 || gone[0].ID != "silent" {
		t.Errorf("gone: %v", gone)
	}
	if len(open) != 1 || open[0].ID != "open" {
		t.Errorf("open streams: %v", open)
	}
	var ids []string
	for _, c := range p.Clients() {
		ids = append(ids, c.ID)
	}
	if fmt.Sprint(ids) != "[beats open]" {
		t.Errorf("remembered: %v", ids)
	}
}
