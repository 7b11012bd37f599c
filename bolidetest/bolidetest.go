// Package bolidetest gives a test its own server, on free ports, gone with the test. Any
// RocketMQ client can connect to it:
//
//	func TestOrders(t *testing.T) {
//		srv := bolidetest.Start(t)
//		srv.CreateTopic("orders", "FIFO")
//		// connect a client to srv.GRPC() or srv.Namesrv()
//		srv.Advance(2 * time.Hour) // invisible times, retries and delays pass
//	}
//
// What may happen to a server happens when the test says so: it restarts, loses its connections, has
// no room on its disk.
//
// Invariants: servers share nothing, so tests may run in parallel; a server leaves nothing
// behind, neither files nor goroutines. Any goroutine of the test may call any method: what
// needs a running server waits while it restarts.
//
// Neighbours: tests of programs that use RocketMQ; server is for programs.
package bolidetest

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// patience bounds starting and stopping, on the slowest of machines.
const patience = time.Minute

// Server is a server that lives as long as its test.
type Server struct {
	t    testing.TB
	o    node.Options
	disk disk
	at   node.Ready // from the first start on, so it can be asked for at any time

	mu   sync.RWMutex // held for writing while the server starts or stops
	node *node.Node   // nil when it is stopped
}

// Option changes how a server is started.
type Option func(*node.Options)

// Setting sets a property under its name in Apache RocketMQ's broker.conf.
func Setting(name, value string) Option {
	return func(o *node.Options) { o.Settings = append(o.Settings, config.Given{Name: name, Value: value}) }
}

// Data keeps the data in dir, which outlives the server.
func Data(dir string) Option {
	return func(o *node.Options) { o.Data = dir }
}

// Start starts a server with its data in a folder of the test. It is stopped, and checked
// for having stopped cleanly, when the test ends.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	o := node.Options{
		Roles:       node.All,
		NamesrvAddr: "127.0.0.1:0", BrokerAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0",
		Settings: []config.Given{
			{Name: "mappedFileSizeCommitLog", Value: "33554432"},
			{Name: "maxHashSlotNum", Value: "10000"},
			{Name: "maxIndexNum", Value: "40000"},
		},
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, option := range options {
		option(&o)
	}
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	s := &Server{t: t, o: o, disk: disk{FS: vfs.Default}}
	s.o.FS = &s.disk
	s.start()
	s.at = s.node.Ready()
	s.o.NamesrvAddr, s.o.BrokerAddr, s.o.GRPCAddr, s.o.ProxyAddr = s.at.Namesrv, s.at.Broker, s.at.GRPC, s.at.Proxy
	t.Cleanup(s.Stop)
	return s
}

// start starts the node. The caller holds mu, or is the only one to know s.
func (s *Server) start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := node.Start(ctx, s.o)
	if err != nil {
		s.t.Fatalf("bolidetest: %v", err)
	}
	s.node = n
}

// stop stops the node, if there is one. The caller holds mu.
func (s *Server) stop() {
	s.t.Helper()
	if s.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.node.Stop(ctx)
	s.node = nil
	if err != nil {
		s.t.Errorf("bolidetest: stop: %v", err)
	}
}

// running returns the node, which runs until done is called; what asks for it fails the test
// when the server is stopped.
func (s *Server) running(what string) (n *node.Node, done func()) {
	s.t.Helper()
	s.mu.RLock()
	if s.node == nil {
		s.mu.RUnlock()
		s.t.Fatalf("bolidetest: %s: the server is stopped", what)
	}
	return s.node, s.mu.RUnlock
}

// Stop stops the server before the test ends. Stopping it again does nothing.
func (s *Server) Stop() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// Restart stops the server, if it runs, and starts it again on the same data and the same
// ports.
func (s *Server) Restart() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	s.start()
}

// Namesrv is the name server's address, HOST:PORT. Like the others it stays the same when the
// server restarts.
func (s *Server) Namesrv() string { return s.at.Namesrv }

// Broker is the broker's address for Remoting clients.
func (s *Server) Broker() string { return s.at.Broker }

// GRPC is the endpoint of gRPC clients.
func (s *Server) GRPC() string { return s.at.GRPC }

// Proxy is the address that takes Remoting and gRPC alike.
func (s *Server) Proxy() string { return s.at.Proxy }

// Advance moves the time that the protocol sees: invisible times, retries, delays and
// expiries of the next d fall due, in their order, and their work is done when Advance
// returns. Sockets, long polls and heartbeats stay on the machine's time, and clients do not
// get to answer in between: one that is to renew an invisible time on the way, or to take each
// of several retries, needs as many calls with its work between them. Time only moves forward.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if d < 0 {
		s.t.Fatalf("bolidetest: Advance(%v): time does not go back", d)
	}
	n, done := s.running("Advance")
	defer done()
	n.Clock().Advance(d)
}

// CreateTopic makes a topic of 8 queues for messages of a type: NORMAL, FIFO, DELAY,
// TRANSACTION, PRIORITY, LITE, or MIXED where the setting enableMixedMessageType is true. Upper
// and lower case are the same.
func (s *Server) CreateTopic(topic, messageType string) {
	s.t.Helper()
	what := fmt.Sprintf("CreateTopic(%q, %q)", topic, messageType)
	messageType = strings.ToUpper(messageType)
	s.call(what, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: topic, DefaultTopic: names.AutoCreate, ReadQueueNums: 8, WriteQueueNums: 8,
		Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: "+message.type=" + messageType,
	}, nil)
}

// CreateGroup makes a consumer group that gets a message at most so many times; one that nobody
// makes gets it 17 times. After the last a message is in the topic "%DLQ%" + group, which the first
// of them makes.
func (s *Server) CreateGroup(group string, attempts int) {
	s.t.Helper()
	s.putGroup(fmt.Sprintf("CreateGroup(%q, %d)", group, attempts), group, attempts, nil)
}

// CreateLiteGroup makes a consumer group whose members subscribe to lite topics below a topic of
// type LITE.
func (s *Server) CreateLiteGroup(group, topic string) {
	s.t.Helper()
	s.putGroup(fmt.Sprintf("CreateLiteGroup(%q, %q)", group, topic), group, 17, map[string]string{"+lite.bind.topic": topic})
}

func (s *Server) putGroup(what, group string, attempts int, attributes map[string]string) {
	s.t.Helper()
	if attempts < 1 || attempts > math.MaxInt32 {
		s.t.Fatalf("bolidetest: %s: a message is delivered at least once", what)
	}
	g := remoting.DefaultSubscriptionGroupConfig(group)
	g.RetryMaxTimes, g.Attributes = int32(attempts-1), attributes
	s.call(what, remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g))
}

// call has the broker do what a method of that name is for.
func (s *Server) call(what string, code int32, h remoting.Header, body []byte) {
	s.t.Helper()
	_, done := s.running(what)
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	answer, err := c.Call(ctx, s.Broker(), code, h, body)
	if err != nil {
		s.t.Fatalf("bolidetest: %s: %v", what, err)
	}
	if answer.Code != remoting.ResSuccess {
		s.t.Fatalf("bolidetest: %s: %s: %s", what, remoting.ResponseName(answer.Code), answer.Remark)
	}
}
