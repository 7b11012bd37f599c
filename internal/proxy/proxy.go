// Package proxy is what a stateless proxy knows between a client and the brokers: routes,
// the queue that a message goes to, the settings of the clients that are connected. It
// speaks no protocol: fronts translate theirs into its words, and a Backend carries them
// out, in this process or over Remoting.
//
// Invariants: nothing here must outlive the process; whatever a receipt needs to stay
// valid (holder, renewal, attempts, dead letters) is state of the broker. No call blocks
// for a message: what can wait takes a completion, called once. A message group always
// lands in the same queue while the number of writable queues stays.
//
// Neighbours: front/grpcv2 and front/proxyrpc call Proxy; proxy/local and proxy/remote
// implement Backend.
package proxy

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Options is what New needs.
type Options struct {
	Backend Backend
}

// Proxy is one proxy. Its methods are safe for concurrent use.
type Proxy struct {
	backend Backend
	clients registry
	turns   sync.Map      // topic → *atomic.Uint32: whose turn it is among the writable queues
	reads   atomic.Uint64 // receives so far
}

// New returns a proxy over the backend. It starts nothing.
func New(o Options) *Proxy {
	p := &Proxy{backend: o.Backend}
	p.clients.mu.byID = make(map[string]*seen)
	return p
}

// Route is where the queues of topic are; ErrTopicNotFound when there are none.
func (p *Proxy) Route(ctx context.Context, topic string) (*Route, error) {
	return p.backend.Route(ctx, topic)
}

// Group is the configuration of a consumer group: what a new group would get when the
// broker does not know it.
func (p *Proxy) Group(ctx context.Context, name string) (Group, error) {
	return p.backend.Group(ctx, name)
}

// Send stores the messages, all in one queue: the one that the message group names when
// there is a single message with one, else the next in turn. Topic and queue of the
// messages are filled in here. done gets where the first of them went.
func (p *Proxy) Send(r *Route, messageGroup string, messages []*message.Message, done func(Sent, error)) {
	n := r.Writable()
	if n == 0 {
		done(Sent{}, ErrNoWritableQueue)
		return
	}
	var i int
	if messageGroup != "" && len(messages) == 1 {
		i = message.GroupQueue(messageGroup, n)
	} else {
		i = p.turn(r.Topic, n)
	}
	broker, queue := r.writeQueue(i)
	for _, m := range messages {
		m.Topic, m.QueueID = r.Topic, queue
	}
	p.backend.Send(broker, messages, done)
}

// Receive asks the named broker, or the next readable one, for messages. withdraw says
// that nobody waits for the answer any more.
func (p *Proxy) Receive(r *Route, q PopRequest, done func(Popped, error)) (withdraw func()) {
	q.Waiter = new(longpoll.Peer)
	broker := r.readBroker(q.Broker, int(p.reads.Add(1)&0xffff))
	if broker == "" {
		done(Popped{}, ErrNoReadableQueue)
		return func() {}
	}
	q.Broker, q.Topic = broker, r.Topic
	p.backend.Pop(q, done)
	return func() { p.backend.Withdraw(q) }
}

// Ack finishes the deliveries that the handles name. done gets one error per handle, nil
// where the delivery is finished.
func (p *Proxy) Ack(group, topic string, handles []receipt.Handle, done func([]error)) {
	p.backend.Ack(group, topic, handles, done)
}

// ChangeInvisible moves the due time of a delivery; done gets its new handle.
func (p *Proxy) ChangeInvisible(c ChangeRequest, done func(receipt.Handle, error)) {
	p.backend.ChangeInvisible(c, done)
}

// DeadLetter moves the delivered message to the dead-letter topic of its group and
// finishes the delivery.
func (p *Proxy) DeadLetter(group, topic string, h receipt.Handle, done func(error)) {
	p.backend.DeadLetter(group, topic, h, done)
}

// EndTransaction carries a producer's decision to the broker that its id names.
func (p *Proxy) EndTransaction(r EndRequest, done func(error)) { p.backend.End(r, done) }

// Recall takes a message back that is not due yet; done gets its id.
func (p *Proxy) Recall(topic, handle string, done func(id string, err error)) {
	p.backend.Recall(topic, handle, done)
}

// turn is a number below n that goes round with each call for the topic.
func (p *Proxy) turn(topic string, n int) int {
	v, ok := p.turns.Load(topic)
	if !ok {
		v, _ = p.turns.LoadOrStore(topic, new(atomic.Uint32))
	}
	return int(v.(*atomic.Uint32).Add(1)-1) % n
}
