package grpcv2_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/bolidetest"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// These tests talk to a whole server with a raw client, free in every field.

const patience = time.Minute

type caller struct {
	v2.MessagingServiceClient
	t    testing.TB
	id   string
	conn *grpc.ClientConn
}

func dial(t testing.TB, addr, id string, options ...grpc.DialOption) *caller {
	t.Helper()
	options = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{v2.NewMessagingServiceClient(conn), t, id, conn}
}

func (c *caller) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "x-mq-client-id", c.id, "x-mq-language", "GO", "x-mq-client-version", "5.1.4")
}

func name(s string) *v2.Resource { return &v2.Resource{Name: s} }

func (c *caller) send(topic string, n int, change func(*v2.Message)) {
	c.t.Helper()
	for i := range n {
		m := &v2.Message{Topic: name(topic), Body: fmt.Appendf(nil, "body %d", i), SystemProperties: &v2.SystemProperties{
			MessageId: fmt.Sprintf("01%032X", rand.Uint64()), MessageType: v2.MessageType_NORMAL, BornTimestamp: timestamppb.Now()}}
		if change != nil {
			change(m)
		}
		resp, err := c.SendMessage(c.ctx(), &v2.SendMessageRequest{Messages: []*v2.Message{m}})
		if err != nil || resp.GetStatus().GetCode() != v2.Code_OK {
			c.t.Fatalf("send: %v, %v", resp, err)
		}
	}
}

func grouped(g string) func(*v2.Message) {
	return func(m *v2.Message) {
		m.SystemProperties.MessageGroup, m.SystemProperties.MessageType = proto.String(g), v2.MessageType_FIFO
	}
}

func receiveRequest(topic, group string) *v2.ReceiveMessageRequest {
	return &v2.ReceiveMessageRequest{Group: name(group), MessageQueue: &v2.MessageQueue{Topic: name(topic), Id: -1},
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}, BatchSize: 32, InvisibleDuration: durationpb.New(30 * time.Second)}
}

func (c *caller) receive(ctx context.Context, req *v2.ReceiveMessageRequest) ([]*v2.Message, *v2.Status, error) {
	stream, err := c.ReceiveMessage(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	var messages []*v2.Message
	var st *v2.Status
	for {
		resp, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return messages, st, nil
		case err != nil:
			return messages, st, err
		case resp.GetStatus() != nil:
			st = resp.GetStatus()
		case resp.GetMessage() != nil:
			messages = append(messages, resp.GetMessage())
		}
	}
}

// take receives until it has n messages.
func (c *caller) take(req *v2.ReceiveMessageRequest, n int) []*v2.Message {
	c.t.Helper()
	var all []*v2.Message
	for end := time.Now().Add(patience); len(all) < n && time.Now().Before(end); {
		messages, st, err := c.receive(c.ctx(), req)
		if err != nil {
			c.t.Fatal(err)
		}
		if code := st.GetCode(); code != v2.Code_OK && code != v2.Code_MESSAGE_NOT_FOUND {
			c.t.Fatalf("receive: %v", st)
		}
		all = append(all, messages...)
	}
	if len(all) != n {
		c.t.Fatalf("received %d messages, want %d", len(all), n)
	}
	return all
}

// nothing checks that there is nothing to receive, for as long as the shortest poll.
func (c *caller) nothing(req *v2.ReceiveMessageRequest) {
	c.t.Helper()
	req = proto.Clone(req).(*v2.ReceiveMessageRequest)
	req.LongPollingTimeout = durationpb.New(time.Second) // means the shortest
	messages, st, err := c.receive(c.ctx(), req)
	if err != nil || st.GetCode() != v2.Code_MESSAGE_NOT_FOUND || len(messages) != 0 {
		c.t.Errorf("received %v, %v, %v; want nothing", messages, st, err)
	}
}

func handle(m *v2.Message) string { return m.GetSystemProperties().GetReceiptHandle() }

func (c *caller) ack(topic, group string, handles ...string) []v2.Code {
	c.t.Helper()
	req := &v2.AckMessageRequest{Topic: name(topic), Group: name(group)}
	for _, h := range handles {
		req.Entries = append(req.Entries, &v2.AckMessageEntry{MessageId: "m", ReceiptHandle: h})
	}
	resp, err := c.AckMessage(c.ctx(), req)
	if err != nil {
		c.t.Fatal(err)
	}
	var codes []v2.Code
	for _, e := range resp.GetEntries() {
		codes = append(codes, e.GetStatus().GetCode())
	}
	return codes
}

func (c *caller) wantAck(topic, group string, want v2.Code, handles ...string) {
	c.t.Helper()
	codes := c.ack(topic, group, handles...)
	if len(codes) != len(handles) {
		c.t.Errorf("%d answers for %d acks", len(codes), len(handles))
	}
	for i, code := range codes {
		if code != want {
			c.t.Errorf("ack %d: %v, want %v", i, code, want)
		}
	}
}

func (c *caller) consumer(group, topic string) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.ctx())
	stream, err := c.Telemetry(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	err = stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: &v2.Settings{
		ClientType: v2.ClientType_PUSH_CONSUMER.Enum(),
		PubSub: &v2.Settings_Subscription{Subscription: &v2.Subscription{Group: name(group), Subscriptions: []*v2.SubscriptionEntry{
			{Topic: name(topic), Expression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}}}}}}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if cmd, err := stream.Recv(); err != nil || cmd.GetStatus().GetCode() != v2.Code_OK {
		c.t.Fatalf("settings: %v, %v", cmd, err)
	}
	return cancel
}

func TestSendReceiveAck(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	c.send("orders", 100, func(m *v2.Message) {
		m.UserProperties = map[string]string{"color": "grün"}
		m.SystemProperties.Tag, m.SystemProperties.Keys = proto.String("a"), []string{"k1", "k2"}
	})
	messages := c.take(receiveRequest("orders", "g"), 100)
	bodies := map[string]int{}
	var handles []string
	for _, m := range messages {
		bodies[string(m.GetBody())]++
		handles = append(handles, handle(m))
		if s := m.GetSystemProperties(); m.GetUserProperties()["color"] != "grün" || s.GetTag() != "a" || strings.Join(s.GetKeys(), " ") != "k1 k2" || s.GetDeliveryAttempt() != 1 || m.GetTopic().GetName() != "orders" {
			t.Fatalf("received %v", m)
		}
	}
	if len(bodies) != 100 {
		t.Errorf("%d different bodies", len(bodies))
	}
	c.wantAck("orders", "g", v2.Code_OK, handles...)
	srv.Advance(time.Hour)
	c.nothing(receiveRequest("orders", "g"))
	c.wantAck("orders", "g", v2.Code_INVALID_RECEIPT_HANDLE, handles[0])
}

// TestDiffSendsBeforeTheirTime: a server that accepts no sends yet is busy to producers, who
// wait between their attempts then; Apache answers INTERNAL_SERVER_ERROR.
func TestDiffSendsBeforeTheirTime(t *testing.T) {
	srv := bolidetest.Start(t, bolidetest.Setting("startAcceptSendRequestTimeStamp", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)))
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "p")
	resp, err := c.SendMessage(c.ctx(), &v2.SendMessageRequest{Messages: []*v2.Message{{Topic: name("orders"),
		Body: []byte("early"), SystemProperties: &v2.SystemProperties{MessageId: "01" + strings.Repeat("0", 32), MessageType: v2.MessageType_NORMAL}}}})
	if err != nil || resp.GetStatus().GetCode() != v2.Code_TOO_MANY_REQUESTS || !strings.HasPrefix(resp.GetStatus().GetMessage(), "broker unable to service, until ") {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestEveryPortTakesGRPC(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	secure := grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))
	for _, addr := range []string{srv.Namesrv(), srv.Broker(), srv.GRPC(), srv.Proxy()} {
		for _, options := range [][]grpc.DialOption{nil, {secure}} {
			c := dial(t, addr, "c", options...)
			host, _, _ := net.SplitHostPort(addr)
			endpoints := &v2.Endpoints{Scheme: v2.AddressScheme_IPv4, Addresses: []*v2.Address{{Host: host, Port: 30010}}}
			resp, err := c.QueryRoute(c.ctx(), &v2.QueryRouteRequest{Topic: name("orders"), Endpoints: endpoints})
			if err != nil || resp.GetStatus().GetCode() != v2.Code_OK || len(resp.GetMessageQueues()) != 8 {
				t.Fatalf("%s: %v, %v", addr, resp, err)
			}
			if got := resp.GetMessageQueues()[0].GetBroker().GetEndpoints(); !proto.Equal(got, endpoints) {
				t.Errorf("%s: endpoints %v", addr, got)
			}
		}
	}
}

func TestLapsedDeliveries(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	c.send("orders", 3, nil)
	req := receiveRequest("orders", "g")
	first := c.take(req, 3)
	c.wantAck("orders", "g", v2.Code_OK, handle(first[0]))

	change, err := c.ChangeInvisibleDuration(c.ctx(), &v2.ChangeInvisibleDurationRequest{Group: name("g"), Topic: name("orders"),
		ReceiptHandle: handle(first[1]), InvisibleDuration: durationpb.New(10 * time.Minute)})
	if err != nil || change.GetStatus().GetCode() != v2.Code_OK {
		t.Fatalf("change: %v, %v", change, err)
	}
	c.wantAck("orders", "g", v2.Code_INVALID_RECEIPT_HANDLE, handle(first[1]))

	srv.Advance(31 * time.Second)
	again := c.take(req, 1)
	if m := again[0]; m.GetSystemProperties().GetMessageId() != first[2].GetSystemProperties().GetMessageId() ||
		m.GetSystemProperties().GetDeliveryAttempt() != 2 || m.GetTopic().GetName() != "orders" || string(m.GetBody()) != string(first[2].GetBody()) {
		t.Errorf("redelivered %v", m)
	}
	c.wantAck("orders", "g", v2.Code_INVALID_RECEIPT_HANDLE, handle(first[2]))
	c.wantAck("orders", "g", v2.Code_OK, handle(again[0]), change.GetReceiptHandle())

	// Zero gives a message back at once.
	c.send("orders", 1, nil)
	m := c.take(req, 1)[0]
	change, err = c.ChangeInvisibleDuration(c.ctx(), &v2.ChangeInvisibleDurationRequest{Group: name("g"), Topic: name("orders"),
		ReceiptHandle: handle(m), InvisibleDuration: durationpb.New(0), Suspend: proto.Bool(true)})
	if err != nil || change.GetStatus().GetCode() != v2.Code_OK {
		t.Fatalf("change: %v, %v", change, err)
	}
	if m := c.take(req, 1)[0]; m.GetSystemProperties().GetDeliveryAttempt() != 1 {
		t.Errorf("a suspended delivery counts: attempt %d", m.GetSystemProperties().GetDeliveryAttempt())
	}
}

// R045: with auto-renewal and without a time, a message is invisible for as long as its
// client is there.
func TestAutoRenewal(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	stop := c.consumer("g", "orders")
	c.send("orders", 2, nil)
	req := receiveRequest("orders", "g")
	req.InvisibleDuration, req.AutoRenew = nil, true
	messages := c.take(req, 2)
	for range 5 {
		srv.Advance(time.Minute)
	}
	c.wantAck("orders", "g", v2.Code_OK, handle(messages[0]))

	stop()
	other := dial(t, srv.GRPC(), "d")
	connections(t, srv, "g", 0)
	srv.Advance(time.Minute)
	if m := other.take(req, 1)[0]; m.GetSystemProperties().GetMessageId() != messages[1].GetSystemProperties().GetMessageId() {
		t.Errorf("redelivered %v", m)
	}
	other.wantAck("orders", "g", v2.Code_INVALID_RECEIPT_HANDLE, handle(messages[1]))
}

// connections waits until a group has n members, as an administrator sees it.
func connections(t *testing.T, srv *bolidetest.Server, group string, n int) []remoting.Connection {
	t.Helper()
	client := transport.NewClient(transport.ClientOptions{})
	defer client.Close()
	var list []remoting.Connection
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		answer, err := client.Call(ctx, srv.Broker(), remoting.ReqGetConsumerConnectionList, &remoting.GetConsumerConnectionListRequest{ConsumerGroup: group}, nil)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		list = nil
		if answer.Code == remoting.ResSuccess {
			var body remoting.ConsumerConnection
			if err := remoting.Unmarshal(answer.Body, &body); err != nil {
				t.Fatal(err)
			}
			list = body.ConnectionSet
		}
		if len(list) == n {
			return list
		}
	}
	t.Fatalf("group %s has %d members, want %d", group, len(list), n)
	return nil
}

// R124: administrators see clients of gRPC.
func TestClientsAreSeen(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "host@1@0@x")
	stop := c.consumer("g", "orders")
	m := connections(t, srv, "g", 1)[0]
	if m.ClientID != "host@1@0@x" || m.Language != "GO" || m.Version != 441 || m.ClientAddr == "" {
		t.Errorf("member %+v", m)
	}
	stop()
	connections(t, srv, "g", 0)
}

// R056: what is no handle of this group is refused as such, at once.
func TestBadHandles(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	c.send("orders", 1, nil)
	good := handle(c.take(receiveRequest("orders", "g"), 1)[0])
	fields := strings.Fields(good)
	elsewhere := strings.Join(append(append(append([]string(nil), fields[:5]...), "elsewhere"), fields[6:]...), " ")
	for _, bad := range []string{"", "garbage", "\x00\x01", good[:len(good)/2], elsewhere, strings.Join(fields[:7], " "), good + " 1"} {
		for rpc, st := range c.all(bad, "g") {
			if st.GetCode() != v2.Code_INVALID_RECEIPT_HANDLE {
				t.Errorf("%s with %q: %v", rpc, bad, st)
			}
		}
	}
	for rpc, st := range c.all(good, "another") {
		if st.GetCode() != v2.Code_INVALID_RECEIPT_HANDLE {
			t.Errorf("%s with another group's handle: %v", rpc, st)
		}
	}
	c.wantAck("orders", "g", v2.Code_OK, good)
}

// all asks every RPC that takes a handle.
func (c *caller) all(handle, group string) map[string]*v2.Status {
	c.t.Helper()
	ack, err1 := c.AckMessage(c.ctx(), &v2.AckMessageRequest{Topic: name("orders"), Group: name(group), Entries: []*v2.AckMessageEntry{{ReceiptHandle: handle}}})
	change, err2 := c.ChangeInvisibleDuration(c.ctx(), &v2.ChangeInvisibleDurationRequest{Topic: name("orders"), Group: name(group), ReceiptHandle: handle, InvisibleDuration: durationpb.New(time.Minute)})
	forward, err3 := c.ForwardMessageToDeadLetterQueue(c.ctx(), &v2.ForwardMessageToDeadLetterQueueRequest{Topic: name("orders"), Group: name(group), ReceiptHandle: handle})
	if err := errors.Join(err1, err2, err3); err != nil {
		c.t.Fatal(err)
	}
	return map[string]*v2.Status{"ack": ack.GetStatus(), "change": change.GetStatus(), "forward": forward.GetStatus()}
}

// R043: what a client could not be handed is there for others at once.
func TestClientDiesDuringItsReceive(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	const n = 24
	c.send("orders", n, func(m *v2.Message) { m.Body = make([]byte, 512<<10) })
	var dead net.Conn
	victim := dial(t, srv.GRPC(), "v", grpc.WithContextDialer(func(ctx context.Context, addr string) (conn net.Conn, err error) {
		dead, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
		return dead, err
	}))
	stream, err := victim.ReceiveMessage(victim.ctx(), receiveRequest("orders", "g"))
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for got < 2 { // it has read a little of a large answer
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if resp.GetMessage() != nil {
			got++
		}
	}
	dead.Close()
	began := time.Now()
	messages := c.take(receiveRequest("orders", "g"), n)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the next client waited %v", took)
	}
	for _, m := range messages {
		if a := m.GetSystemProperties().GetDeliveryAttempt(); a != 1 {
			t.Errorf("attempt %d", a)
		}
	}
}

// A poll that was just cancelled takes no message away from others.
func TestCancelledPollTakesNothing(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	ctx, cancel := context.WithCancel(c.ctx())
	var polls sync.WaitGroup
	for range 8 {
		polls.Go(func() { _, _, _ = c.receive(ctx, receiveRequest("orders", "g")) })
	}
	cancel()
	polls.Wait()
	c.send("orders", 16, nil)
	for _, m := range c.take(receiveRequest("orders", "g"), 16) {
		if a := m.GetSystemProperties().GetDeliveryAttempt(); a != 1 {
			t.Errorf("attempt %d", a)
		}
	}
}

func TestFIFOAndDeadLetters(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "FIFO")
	c := dial(t, srv.GRPC(), "c")
	for _, g := range []string{"A", "B", "A"} {
		c.send("orders", 1, grouped(g))
	}
	req := receiveRequest("orders", "g")
	first := c.take(req, 2) // one of each message group
	groups := map[string]*v2.Message{}
	for _, m := range first {
		groups[m.GetSystemProperties().GetMessageGroup()] = m
	}
	if len(groups) != 2 {
		t.Fatalf("received %v", first)
	}
	// The failed one comes again before its successor.
	c.wantAck("orders", "g", v2.Code_OK, handle(groups["B"]))
	srv.Advance(31 * time.Second)
	again := c.take(req, 1)[0]
	if again.GetSystemProperties().GetMessageId() != groups["A"].GetSystemProperties().GetMessageId() || again.GetSystemProperties().GetDeliveryAttempt() != 2 {
		t.Fatalf("received %v, want the failed one", again)
	}
	forward, err := c.ForwardMessageToDeadLetterQueue(c.ctx(), &v2.ForwardMessageToDeadLetterQueueRequest{Group: name("g"), Topic: name("orders"),
		ReceiptHandle: handle(again), MessageId: again.GetSystemProperties().GetMessageId(), DeliveryAttempt: 17, MaxDeliveryAttempts: 17})
	if err != nil || forward.GetStatus().GetCode() != v2.Code_OK {
		t.Fatalf("forward: %v, %v", forward, err)
	}
	next := c.take(req, 1)[0]
	if next.GetSystemProperties().GetMessageGroup() != "A" || next.GetSystemProperties().GetMessageId() == again.GetSystemProperties().GetMessageId() {
		t.Errorf("received %v, want the successor", next)
	}
	c.wantAck("orders", "g", v2.Code_OK, handle(next))

	dead := c.take(receiveRequest("%DLQ%g", "reader"), 1)[0]
	if string(dead.GetBody()) != string(again.GetBody()) || dead.GetSystemProperties().GetMessageId() != again.GetSystemProperties().GetMessageId() || dead.GetSystemProperties().GetDeliveryAttempt() != 1 {
		t.Errorf("dead letter %v", dead)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	for _, tag := range []string{"a", "b", "c"} {
		c.send("orders", 4, func(m *v2.Message) { m.SystemProperties.Tag = proto.String(tag) })
	}
	req := receiveRequest("orders", "g")
	req.FilterExpression.Expression = "a||c"
	for _, m := range c.take(req, 8) {
		if tag := m.GetSystemProperties().GetTag(); tag == "b" {
			t.Errorf("received tag %s", tag)
		}
	}
}

// SQL filters work, and say what is wrong with one and where (R104).
func TestSQLFilters(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	for i := range 12 {
		c.send("orders", 1, func(m *v2.Message) { m.UserProperties = map[string]string{"amount": strconv.Itoa(i)} })
	}
	req := receiveRequest("orders", "g")
	req.FilterExpression = &v2.FilterExpression{Type: v2.FilterType_SQL, Expression: "amount BETWEEN 3 AND 7 AND note IS NULL"}
	for _, m := range c.take(req, 5) {
		if n, _ := strconv.Atoi(m.GetUserProperties()["amount"]); n < 3 || n > 7 {
			t.Errorf("received %v", m.GetUserProperties())
		}
	}
	req.FilterExpression.Expression = "amount > 'x'"
	_, st, err := c.receive(c.ctx(), req)
	if err != nil || st.GetCode() != v2.Code_ILLEGAL_FILTER_EXPRESSION || !strings.Contains(st.GetMessage(), "position 10") {
		t.Errorf("%v, %v", st, err)
	}
}

// What was acknowledged and what was sent is there after a restart; clients need only
// connect again.
func TestRestart(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	c.send("orders", 10, nil)
	messages := c.take(receiveRequest("orders", "g"), 10)
	for _, m := range messages[:4] {
		c.wantAck("orders", "g", v2.Code_OK, handle(m))
	}
	srv.Restart()
	c = dial(t, srv.GRPC(), "c")
	c.wantAck("orders", "g", v2.Code_OK, handle(messages[4]))
	srv.Advance(time.Minute)
	left := map[string]bool{}
	for _, m := range messages[5:] {
		left[m.GetSystemProperties().GetMessageId()] = true
	}
	for _, m := range c.take(receiveRequest("orders", "g"), 5) {
		if !left[m.GetSystemProperties().GetMessageId()] {
			t.Errorf("received %v", m)
		}
	}
}
