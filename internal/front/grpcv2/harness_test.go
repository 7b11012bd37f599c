package grpcv2

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// fakeBroker is a proxy.Backend in memory: one queue per topic, no durability, no FIFO.
type fakeBroker struct {
	mu        sync.Mutex
	routes    map[string]*proxy.Route
	groups    map[string]proxy.Group
	queues    map[string][]*fakeRecord
	waiting   []*fakePop
	popTime   int64
	joined    map[string]*proxy.Client
	left      []string
	pops      []proxy.PopRequest
	withdrawn []*longpoll.Peer
	sendErr   error
	released  int
	given     []proxy.ChangeRequest
	dead      []receipt.Handle
	lites     []proxy.LiteSubscription
	liteErr   error
}

type fakeRecord struct {
	bytes    []byte
	message  message.Message
	popTime  int64 // of the delivery in flight, 0 = visible
	attempts int32
	done     bool
}

type fakePop struct {
	q    proxy.PopRequest
	done func(proxy.Popped, error)
	t    *time.Timer
}

func newFakeBroker() *fakeBroker {
	return &fakeBroker{
		routes: map[string]*proxy.Route{}, groups: map[string]proxy.Group{}, queues: map[string][]*fakeRecord{},
		joined: map[string]*proxy.Client{}, popTime: 1_700_000_000_000,
	}
}

func (f *fakeBroker) topic(name string, kind proxy.Kind) {
	f.routes[name] = &proxy.Route{Topic: name, Kind: kind, Brokers: []proxy.BrokerQueues{
		{Broker: "broker-a", Read: 4, Write: 4, Readable: true, Writable: true}}}
}

func (f *fakeBroker) Route(_ context.Context, topic string) (*proxy.Route, error) {
	if topic == "broken" {
		panic("as asked")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.routes[topic]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w: %s", proxy.ErrTopicNotFound, topic)
}

func (f *fakeBroker) Group(_ context.Context, name string) (proxy.Group, error) {
	if g, is := f.groups[name]; is {
		return g, nil
	}
	return proxy.Group{Name: name, MaxAttempts: proxy.DefaultMaxAttempts, Backoff: proxy.DefaultBackoff, LiteQuota: 2000}, nil
}

func (f *fakeBroker) Send(_ string, ms []*message.Message, done func(proxy.Sent, error)) {
	f.mu.Lock()
	if f.sendErr != nil {
		f.mu.Unlock()
		done(proxy.Sent{}, f.sendErr)
		return
	}
	var sent proxy.Sent
	for i, m := range ms {
		q := f.queues[m.Topic]
		m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp = int64(len(q)), int64(len(q))*1000, 1_700_000_000_123
		m.StoreHost = m.BornHost
		b, err := message.AppendStored(nil, m)
		if err != nil {
			panic(err)
		}
		r := &fakeRecord{bytes: b}
		if _, err := message.DecodeStored(b, &r.message); err != nil {
			panic(err)
		}
		if i == 0 {
			sent = proxy.Sent{Offset: m.QueueOffset, QueueID: m.QueueID}
		}
		f.queues[m.Topic] = append(q, r)
	}
	f.mu.Unlock()
	f.wake()
	done(sent, nil)
}

// take is what a pop gets now; mu is held.
func (f *fakeBroker) take(q proxy.PopRequest) (proxy.Popped, bool) {
	p := proxy.Popped{Broker: "broker-a", InvisibleTime: q.InvisibleTime.Milliseconds()}
	for i, r := range f.queues[q.Topic] {
		if len(p.Batches) == q.Max {
			break
		}
		if r.done || r.popTime != 0 || !q.Filter.Match(r.message.Properties) {
			continue
		}
		if p.PopTime == 0 {
			f.popTime++
			p.PopTime = f.popTime
		}
		r.popTime = f.popTime
		p.Batches = append(p.Batches, proxy.PopBatch{QueueID: r.message.QueueID, StartOffset: int64(i),
			Records: []storage.Record{{QueueOffset: int64(i), PhysicalOffset: int64(i) * 1000, Bytes: r.bytes}}, Attempts: []int32{r.attempts}})
		r.attempts++
	}
	p.Release = func() { f.mu.Lock(); f.released++; f.mu.Unlock() }
	return p, len(p.Batches) > 0
}

func (f *fakeBroker) Pop(q proxy.PopRequest, done func(proxy.Popped, error)) {
	f.mu.Lock()
	f.pops = append(f.pops, q)
	if p, found := f.take(q); found {
		f.mu.Unlock()
		done(p, nil)
		return
	}
	w := &fakePop{q: q, done: done}
	f.waiting = append(f.waiting, w)
	w.t = time.AfterFunc(q.PollTime, func() {
		if f.unpark(w) {
			done(proxy.Popped{Status: proxy.PopNoNew}, nil)
		}
	})
	f.mu.Unlock()
}

func (f *fakeBroker) Withdraw(q proxy.PopRequest) {
	f.mu.Lock()
	f.withdrawn = append(f.withdrawn, q.Waiter)
	f.mu.Unlock()
}

func (f *fakeBroker) unpark(w *fakePop) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range f.waiting {
		if other == w {
			f.waiting = append(f.waiting[:i], f.waiting[i+1:]...)
			w.t.Stop()
			return true
		}
	}
	return false
}

func (f *fakeBroker) wake() {
	f.mu.Lock()
	parked := append([]*fakePop(nil), f.waiting...)
	f.mu.Unlock()
	for _, w := range parked {
		f.mu.Lock()
		p, found := f.take(w.q)
		f.mu.Unlock()
		if found && f.unpark(w) {
			w.done(p, nil)
		}
	}
}

func (f *fakeBroker) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.waiting {
		w.t.Stop()
	}
}

func (f *fakeBroker) find(topic string, h receipt.Handle) (*fakeRecord, error) {
	q := f.queues[topic]
	switch {
	case h.Broker != "broker-a" || h.Offset >= int64(len(q)):
		return nil, proxy.ErrIllegalHandle
	case q[h.Offset].popTime != h.PopTime && !q[h.Offset].done:
		return nil, proxy.ErrStaleHandle
	}
	return q[h.Offset], nil
}

func (f *fakeBroker) Ack(_, topic string, handles []receipt.Handle, done func([]error)) {
	errs := make([]error, len(handles))
	f.mu.Lock()
	for i, h := range handles {
		r, err := f.find(topic, h)
		if errs[i] = err; err == nil {
			r.done = true
		}
	}
	f.mu.Unlock()
	done(errs)
}

func (f *fakeBroker) ChangeInvisible(c proxy.ChangeRequest, done func(receipt.Handle, error)) {
	f.mu.Lock()
	r, err := f.find(c.Topic, c.Handle)
	h := c.Handle
	if err == nil {
		f.popTime++
		r.popTime = f.popTime
		h.StartOffset, h.PopTime, h.InvisibleTime = h.Offset, r.popTime, c.Invisible.Milliseconds()
		if c.Invisible == 0 {
			r.popTime = 0
		}
		if c.Suspend {
			r.attempts--
		}
		f.given = append(f.given, c)
	}
	f.mu.Unlock()
	f.wake()
	done(h, err)
}

func (f *fakeBroker) Recall(_, handle string, done func(string, error)) {
	if handle != "of 01" {
		done("", fmt.Errorf("%w: %s", proxy.ErrIllegalRecall, handle))
		return
	}
	done("01", nil)
}

func (f *fakeBroker) DeadLetter(_, topic string, h receipt.Handle, done func(error)) {
	f.mu.Lock()
	r, err := f.find(topic, h)
	if err == nil {
		r.done = true
		f.dead = append(f.dead, h)
	}
	f.mu.Unlock()
	done(err)
}

func (f *fakeBroker) Join(c *proxy.Client) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.joined[c.ID] = c
	return nil
}

func (f *fakeBroker) End(r proxy.EndRequest, done func(error)) {
	done(fmt.Errorf("%w: %s", proxy.ErrIllegalTransaction, r.TransactionID))
}

func (f *fakeBroker) Leave(c *proxy.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.joined, c.ID)
	f.left = append(f.left, c.ID)
}

// harness is a service over a fake broker, reached through an in-memory connection.
type harness struct {
	*fakeBroker
	t       testing.TB
	service *Service
	proxy   *proxy.Proxy
	client  v2.MessagingServiceClient
	conn    *grpc.ClientConn
}

func newHarness(t testing.TB, change ...func(*Options)) *harness {
	h := &harness{fakeBroker: newFakeBroker(), t: t}
	h.proxy = proxy.New(proxy.Options{Backend: h.fakeBroker})
	o := Options{Proxy: h.proxy, Clock: clock.New()}
	for _, f := range change {
		f(&o)
	}
	h.service = New(o)
	srv := h2.NewServer(h2.Options{})
	h.service.Register(srv)
	lis := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), lis) }()
	conn, err := grpc.NewClient("passthrough:///bolide", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return lis.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	h.conn, h.client = conn, v2.NewMessagingServiceClient(conn)
	t.Cleanup(func() {
		conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.service.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		h.stop()
		srv.Stop(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return h
}

// as is the context of a call of the client.
func (h *harness) as(client string, more ...string) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	h.t.Cleanup(cancel)
	kv := append([]string{headerLanguage, "GO", headerVersion, "5.1.4", "x-mq-protocol", "v2"}, more...)
	if client != "" {
		kv = append(kv, headerClientID, client)
	}
	return metadata.AppendToOutgoingContext(ctx, kv...)
}

// rawCodec sends bytes as they are, and leaves answers as they came.
type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}

// raw makes a call with a request that is given as bytes.
func (h *harness) raw(ctx context.Context, method string, wire []byte, answer proto.Message) {
	h.t.Helper()
	var got []byte
	if err := h.conn.Invoke(ctx, method, wire, &got, grpc.ForceCodec(rawCodec{})); err != nil {
		h.t.Fatal(err)
	}
	if err := proto.Unmarshal(got, answer); err != nil {
		h.t.Fatal(err)
	}
}

func resource(name string) *v2.Resource { return &v2.Resource{Name: name} }

// SyncLite implements proxy.Lites.
func (b *fakeBroker) SyncLite(s proxy.LiteSubscription) error {
	b.lites = append(b.lites, s)
	return b.liteErr
}
