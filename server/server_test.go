package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
	"github.com/bolidemq/bolide/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

func start(t *testing.T, change func(*server.Options)) *server.Server {
	t.Helper()
	o := server.Options{
		Data:        t.TempDir(),
		NamesrvAddr: "127.0.0.1:0", BrokerAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0",
		Settings: map[string]string{"mappedFileSizeCommitLog": "33554432", "maxHashSlotNum": "10000", "maxIndexNum": "40000"},
	}
	if change != nil {
		change(&o)
	}
	s, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error("stop:", err)
	}
}

type caller struct {
	t *testing.T
	c *transport.Client
}

func newCaller(t *testing.T, config *tls.Config) *caller {
	c := &caller{t, transport.NewClient(transport.ClientOptions{TLS: config})}
	t.Cleanup(c.c.Close)
	return c
}

func (c *caller) call(addr string, code int32, h remoting.Header, body []byte) *remoting.Command {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := c.c.Call(ctx, addr, code, h, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *caller) createTopic(addr, topic string) {
	c.t.Helper()
	a := c.call(addr, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: topic, DefaultTopic: names.AutoCreate, ReadQueueNums: 2, WriteQueueNums: 2, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil)
	if a.Code != remoting.ResSuccess {
		c.t.Fatalf("create topic: %d %s", a.Code, a.Remark)
	}
}

// brokerAddress is where a Remoting client is sent.
func (c *caller) brokerAddress(addr, topic string) string {
	c.t.Helper()
	a := c.call(addr, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: topic}, nil)
	var route remoting.TopicRouteData
	if a.Code != remoting.ResSuccess || remoting.Unmarshal(a.Body, &route) != nil || len(route.BrokerDatas) != 1 {
		c.t.Fatalf("route: %d %s %s", a.Code, a.Remark, a.Body)
	}
	return route.BrokerDatas[0].BrokerAddrs[0]
}

func service(t *testing.T, addr string, creds credentials.TransportCredentials) v2.MessagingServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return v2.NewMessagingServiceClient(conn)
}

// endpoint is where a gRPC client is sent.
func endpoint(t *testing.T, addr string, creds credentials.TransportCredentials, topic string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-mq-client-id", "c", "x-mq-language", "GO", "x-mq-client-version", "5.0.0")
	a, err := service(t, addr, creds).QueryRoute(ctx, &v2.QueryRouteRequest{Topic: &v2.Resource{Name: topic}})
	if err != nil {
		t.Fatal(err)
	}
	if a.GetStatus().GetCode() != v2.Code_OK || len(a.MessageQueues) == 0 {
		t.Fatalf("route: %v", a)
	}
	at := a.MessageQueues[0].Broker.Endpoints.Addresses[0]
	return fmt.Sprintf("%s:%d", at.Host, at.Port)
}

// R120: a client is told the address at which it reached the server.
func TestClientsAreToldWhereTheyAre(t *testing.T) {
	s := start(t, nil)
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders")
	for addr, want := range map[string]string{
		s.Namesrv(): s.Broker(),
		s.Broker():  s.Broker(),
		s.Proxy():   s.Proxy(), // perhaps the only port that is open to it
		s.GRPC():    s.GRPC(),
	} {
		if got := c.brokerAddress(addr, "orders"); got != want {
			t.Errorf("who comes to %s is sent to %s, want %s", addr, got, want)
		}
	}
	for _, addr := range []string{s.GRPC(), s.Proxy(), s.Broker(), s.Namesrv()} {
		if got := endpoint(t, addr, insecure.NewCredentials(), "orders"); got != addr {
			t.Errorf("who comes to %s by gRPC is sent to %s", addr, got)
		}
	}
}

// A broker that listens on one address is found there, whatever address of the machine the name
// server was reached at.
func TestClientsAreToldTheOnlyAddress(t *testing.T) {
	s := start(t, func(o *server.Options) { o.NamesrvAddr = ":0" })
	_, port, err := net.SplitHostPort(s.Namesrv())
	if err != nil {
		t.Fatal(err)
	}
	at := net.JoinHostPort("::1", port)
	if conn, err := net.Dial("tcp", at); err != nil {
		t.Skip("this machine has no second address of its own:", err)
	} else {
		conn.Close()
	}
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders")
	if got := c.brokerAddress(at, "orders"); got != s.Broker() {
		t.Errorf("who comes to %s is sent to %s, want %s", at, got, s.Broker())
	}
}

// R120: behind address translation one setting is enough, for both protocols.
func TestAdvertise(t *testing.T) {
	s := start(t, func(o *server.Options) { o.Advertise = "mq.example.com:30911" })
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders")
	for _, addr := range []string{s.Namesrv(), s.Broker(), s.GRPC(), s.Proxy()} {
		if got := c.brokerAddress(addr, "orders"); got != "mq.example.com:30911" {
			t.Errorf("who comes to %s is sent to %s", addr, got)
		}
	}
	if got := endpoint(t, s.GRPC(), insecure.NewCredentials(), "orders"); got != "mq.example.com:30911" {
		t.Errorf("by gRPC: %s", got)
	}
}

// Every port takes TLS too, for both protocols.
func TestTLSOnEveryPort(t *testing.T) {
	s := start(t, nil)
	anyCertificate := &tls.Config{InsecureSkipVerify: true} // as clients do by default
	c := newCaller(t, anyCertificate)
	c.createTopic(s.Broker(), "orders")
	for _, addr := range []string{s.Namesrv(), s.Broker(), s.GRPC(), s.Proxy()} {
		c.brokerAddress(addr, "orders")
		if got := endpoint(t, addr, credentials.NewTLS(anyCertificate), "orders"); got != addr {
			t.Errorf("who comes to %s by gRPC is sent to %s", addr, got)
		}
	}
}

// What is neither gRPC nor Remoting is closed, and others do not notice.
func TestForeignBytes(t *testing.T) {
	s := start(t, nil)
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\xff\xff\xff\xff\xff\xff\xff\xff", "SSH-2.0-OpenSSH_9.0\r\n"} {
		conn, err := net.Dial("tcp", s.Broker())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		var timeout net.Error
		if _, err := io.ReadAll(conn); errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%q: the connection stays open", text)
		}
		conn.Close()
	}
	newCaller(t, nil).createTopic(s.Broker(), "orders")
}

// A waiting request is answered, empty, when the server stops; it does not hold it up.
func TestStopAnswersWhoWaits(t *testing.T) {
	s := start(t, nil)
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders")
	answers := make(chan *remoting.Command, 2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wait := func(code int32, h remoting.Header) {
		a, err := c.c.Call(ctx, s.Broker(), code, h, nil)
		if err != nil {
			t.Errorf("%s: %v", remoting.CodeName(code), err)
			a = nil
		}
		answers <- a
	}
	polls := (60 * time.Second).Milliseconds()
	go wait(remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: "g", Topic: "orders", QueueID: -1, MaxMsgNums: 1,
		InvisibleTime: 60_000, PollTime: polls, BornTime: time.Now().UnixMilli()})
	go wait(remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: "h", Topic: "orders", QueueID: 0, MaxMsgNums: 1,
		SysFlag: 2 | 4, SuspendTimeoutMillis: polls, Subscription: "*"})
	c.call(s.Broker(), remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "orders"}, nil)
	for range 50 { // until both wait: nothing tells from outside
		c.call(s.Broker(), remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "orders"}, nil)
	}
	began := time.Now()
	stop(t, s)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for range 2 {
		if a := <-answers; a != nil && a.Code != remoting.ResPollingTimeout && a.Code != remoting.ResPullNotFound {
			t.Errorf("answered %s: %s", remoting.ResponseName(a.Code), a.Remark)
		}
	}
}

// What was acknowledged before or during a stop is there after the next start.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	data := t.TempDir()
	s := start(t, func(o *server.Options) { o.Data = data })
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders")
	var senders sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[int64]bool{} // offsets of queue 0
	enough := make(chan struct{})
	for range 4 {
		senders.Go(func() {
			for {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				a, err := c.c.Call(ctx, s.Broker(), remoting.ReqSendMessageV2, &remoting.SendMessageRequest{
					V2: true, ProducerGroup: "p", Topic: "orders", DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 4,
					BornTimestamp: time.Now().UnixMilli(),
				}, []byte(strings.Repeat("x", 1000)))
				cancel()
				var h remoting.SendMessageResponse
				if err != nil || a.Code != remoting.ResSuccess || a.Decode(&h) != nil {
					return
				}
				mu.Lock()
				acknowledged[h.QueueOffset] = true
				if len(acknowledged) == 2000 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	stop(t, s)
	senders.Wait()

	again := start(t, func(o *server.Options) { o.Data = data })
	a := c.call(again.Broker(), remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: "orders", QueueID: 0}, nil)
	var h remoting.GetMaxOffsetResponse
	if a.Code != remoting.ResSuccess || a.Decode(&h) != nil {
		t.Fatalf("max offset: %d %s", a.Code, a.Remark)
	}
	for offset := range acknowledged {
		if offset >= h.Offset {
			t.Fatalf("offset %d was acknowledged, the queue ends at %d", offset, h.Offset)
		}
	}
}

// Configuration is changed from this machine only. Its own address on the network counts
// as another machine's.
func TestConfigurationUpdatesFromAfar(t *testing.T) {
	s := start(t, func(o *server.Options) { o.BrokerAddr = "0.0.0.0:0" })
	port := netip.MustParseAddrPort(s.Broker()).Port()
	c := newCaller(t, nil)
	body := []byte("defaultTopicQueueNums=4\n")
	if a := c.call(fmt.Sprintf("127.0.0.1:%d", port), remoting.ReqUpdateBrokerConfig, nil, body); a.Code != remoting.ResSuccess {
		t.Errorf("from here: %d %s", a.Code, a.Remark)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		a := c.call(fmt.Sprintf("%s:%d", ip.IP, port), remoting.ReqUpdateBrokerConfig, nil, body)
		if a.Code != remoting.ResNoPermission || !strings.Contains(a.Remark, "this machine only") {
			t.Errorf("from afar: %d %s", a.Code, a.Remark)
		}
		return
	}
	t.Skip("this machine has no IPv4 address but the loopback ones; runs where it is on a network")
}
