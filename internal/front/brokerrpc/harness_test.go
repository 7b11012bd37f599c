package brokerrpc

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// node is a broker behind an in-memory network, and a client of it.
type node struct {
	*broker.Broker
	t      testing.TB
	fs     vfs.FS
	addr   string
	vip    string
	client *transport.Client
	dial   *transport.PipeNetwork
	stop   func()
}

func newNode(t testing.TB) *node { return startNode(t, vfs.NewMem()) }

func startNode(t testing.TB, fs vfs.FS, tune ...func(*config.Broker, *config.Store)) *node {
	t.Helper()
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	sc.MappedFileSizeCommitLog, sc.MappedFileSizeConsume, sc.MaxMessageSize = 1<<20, 20*256, 32<<10
	for _, f := range tune {
		f(&bc, &sc)
	}
	b, err := broker.Open(broker.Options{FS: fs, Dir: "data", Broker: config.NewLive(bc), StoreConfig: config.NewLive(sc),
		StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"), Tune: broker.Tuning{IndexSlots: 100, IndexEntries: 1000, QueryRecords: 3000, MaxWaiting: 1000, WheelSlots: 10_000, TimerLog: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Broker: b, t: t, fs: fs, dial: transport.NewPipeNetwork()}
	front := New(Options{Broker: b, Log: slog.New(slog.DiscardHandler)})
	group := lifecycle.New(slog.New(slog.DiscardHandler))
	for _, l := range b.Loops() {
		group.Go(l.Name, l.Run)
	}
	serve := func(addr string, h transport.Handler) *transport.Server {
		server := transport.NewServer(transport.Options{Handler: h, OnClose: front.Closed})
		l, err := n.dial.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		group.Go("serve "+addr, func(ctx context.Context) error { return server.Serve(ctx, l) })
		return server
	}
	n.addr, n.vip = "127.0.0.1:10911", "127.0.0.1:10909"
	main, vip := serve(n.addr, front.Handle), serve(n.vip, front.HandleVIP)
	n.client = transport.NewClient(transport.ClientOptions{Dial: n.dial.Dial})
	stopped := false
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		n.client.Close()
		b.Quiesce()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		main.Shutdown(ctx)
		vip.Shutdown(ctx)
		if err := group.Stop(); err != nil {
			t.Errorf("a loop failed: %v", err)
		}
		if err := b.Check(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(n.stop)
	return n
}

// call asks and expects an answer.
func (n *node) call(code int32, h remoting.Header, body []byte) *remoting.Command {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := n.client.Call(ctx, n.addr, code, h, body)
	if err != nil {
		n.t.Fatalf("%s: %v", remoting.CodeName(code), err)
	}
	return r
}

// ok is call for what must succeed; h, if any, gets the answer's header.
func (n *node) ok(code int32, ask remoting.Header, body []byte, answer remoting.Header) []byte {
	n.t.Helper()
	r := n.call(code, ask, body)
	if r.Code != remoting.ResSuccess {
		n.t.Fatalf("%s: code %d, %s", remoting.CodeName(code), r.Code, r.Remark)
	}
	if answer != nil {
		if err := r.Decode(answer); err != nil {
			n.t.Fatal(err)
		}
	}
	return r.Body
}

func (n *node) topic(name string, queues int32) {
	n.t.Helper()
	if err := n.Topics.Put(&topic.Config{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: 6, FilterType: topic.SingleTag}); err != nil {
		n.t.Fatal(err)
	}
}

func sendHeader(topic string, queue int32, properties string) *remoting.SendMessageRequest {
	return &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
		QueueID: queue, BornTimestamp: 1700000000000, Properties: properties}
}

func (n *node) send(topic string, queue int32, body, properties string) remoting.SendMessageResponse {
	n.t.Helper()
	var a remoting.SendMessageResponse
	n.ok(remoting.ReqSendMessageV2, sendHeader(topic, queue, properties), []byte(body), &a)
	return a
}

func pullHeader(group, topic string, queue int32, offset int64) *remoting.PullMessageRequest {
	return &remoting.PullMessageRequest{ConsumerGroup: group, Topic: topic, QueueID: queue, QueueOffset: offset, MaxMsgNums: 32,
		SysFlag: remoting.PullSubscription, Subscription: "*", ExpressionType: "TAG"}
}

// records decodes a body of records.
func records(t testing.TB, body []byte) []*message.Message {
	t.Helper()
	var list []*message.Message
	for len(body) > 0 {
		m := new(message.Message)
		n, err := message.DecodeStored(body, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := message.CheckCRC(body[:n]); err != nil {
			t.Fatal(err)
		}
		list = append(list, m.Clone())
		body = body[n:]
	}
	return list
}

// until polls a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// crash is the file system as a killed process leaves it: everything that was written.
func crash(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
}
