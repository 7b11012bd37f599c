package grpcv2

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

func wantStatus(t *testing.T, what string, got *v2.Status, code v2.Code, message string) {
	t.Helper()
	if got.GetCode() != code || !strings.Contains(got.GetMessage(), message) {
		t.Errorf("%s: %v %q, want %v %q", what, got.GetCode(), got.GetMessage(), code, message)
	}
}

func normal(topic, id string) *v2.Message {
	return &v2.Message{Topic: resource(topic), Body: []byte("body of " + id),
		SystemProperties: &v2.SystemProperties{MessageId: id, MessageType: v2.MessageType_NORMAL}}
}

func (h *harness) sendOne(m ...*v2.Message) *v2.SendMessageResponse {
	h.t.Helper()
	resp, err := h.client.SendMessage(h.as("p"), &v2.SendMessageRequest{Messages: m})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func TestEveryCallNeedsAClientID(t *testing.T) {
	h := newHarness(t)
	ctx := h.as("  ")
	check := func(what string, st *v2.Status, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		wantStatus(t, what, st, v2.Code_CLIENT_ID_REQUIRED, "client id cannot be empty")
	}
	a, err := h.client.QueryRoute(ctx, &v2.QueryRouteRequest{})
	check("QueryRoute", a.GetStatus(), err)
	b, err := h.client.Heartbeat(ctx, &v2.HeartbeatRequest{})
	check("Heartbeat", b.GetStatus(), err)
	c, err := h.client.SendMessage(ctx, &v2.SendMessageRequest{})
	check("SendMessage", c.GetStatus(), err)
	d, err := h.client.QueryAssignment(ctx, &v2.QueryAssignmentRequest{})
	check("QueryAssignment", d.GetStatus(), err)
	e, err := h.client.AckMessage(ctx, &v2.AckMessageRequest{})
	check("AckMessage", e.GetStatus(), err)
	f, err := h.client.ForwardMessageToDeadLetterQueue(ctx, &v2.ForwardMessageToDeadLetterQueueRequest{})
	check("ForwardMessageToDeadLetterQueue", f.GetStatus(), err)
	g, err := h.client.EndTransaction(ctx, &v2.EndTransactionRequest{})
	check("EndTransaction", g.GetStatus(), err)
	i, err := h.client.NotifyClientTermination(ctx, &v2.NotifyClientTerminationRequest{})
	check("NotifyClientTermination", i.GetStatus(), err)
	j, err := h.client.ChangeInvisibleDuration(ctx, &v2.ChangeInvisibleDurationRequest{})
	check("ChangeInvisibleDuration", j.GetStatus(), err)
	k, err := h.client.RecallMessage(ctx, &v2.RecallMessageRequest{})
	check("RecallMessage", k.GetStatus(), err)
	l, err := h.client.SyncLiteSubscription(ctx, &v2.SyncLiteSubscriptionRequest{})
	check("SyncLiteSubscription", l.GetStatus(), err)
	m, err := h.client.ReceiveMessage(ctx, &v2.ReceiveMessageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Recv()
	check("ReceiveMessage", first.GetStatus(), err)
	n, err := h.client.Telemetry(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := n.Recv()
	check("Telemetry", cmd.GetStatus(), err)
}

func TestUnservedCallsAreUnimplemented(t *testing.T) {
	h := newHarness(t)
	_, a := h.client.UpdateOffset(h.as("c"), &v2.UpdateOffsetRequest{})
	_, b := h.client.GetOffset(h.as("c"), &v2.GetOffsetRequest{})
	_, c := h.client.QueryOffset(h.as("c"), &v2.QueryOffsetRequest{})
	p, d := h.client.PullMessage(h.as("c"), &v2.PullMessageRequest{})
	if d == nil {
		_, d = p.Recv()
	}
	for i, err := range []error{a, b, c, d} {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestQueryRoute(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindFIFO)
	h.routes["uneven"] = &proxy.Route{Topic: "uneven", Kind: proxy.KindMixed, Brokers: []proxy.BrokerQueues{
		{Broker: "broker-a", Read: 3, Write: 1, Readable: true, Writable: true}}}
	h.routes["shut"] = &proxy.Route{Topic: "shut", Kind: proxy.KindUnspecified, Brokers: []proxy.BrokerQueues{{Broker: "broker-a", Read: 2, Write: 2}}}
	query := func(topic string, e *v2.Endpoints) *v2.QueryRouteResponse {
		resp, err := h.client.QueryRoute(h.as("c"), &v2.QueryRouteRequest{Topic: resource(topic), Endpoints: e})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	came := &v2.Endpoints{Addresses: []*v2.Address{{Host: "mq.example.com", Port: 30010}}}
	resp := query("orders", came)
	wantStatus(t, "route", resp.GetStatus(), v2.Code_OK, "OK")
	if len(resp.GetMessageQueues()) != 4 {
		t.Fatalf("%d queues", len(resp.GetMessageQueues()))
	}
	for i, q := range resp.GetMessageQueues() {
		want := &v2.MessageQueue{Topic: resource("orders"), Id: int32(i), Permission: v2.Permission_READ_WRITE,
			AcceptMessageTypes: []v2.MessageType{v2.MessageType_FIFO},
			// R058, R138: the endpoints are those that the client came by, with a scheme.
			Broker: &v2.Broker{Name: "broker-a", Endpoints: &v2.Endpoints{Scheme: v2.AddressScheme_DOMAIN_NAME, Addresses: came.Addresses}}}
		if !proto.Equal(q, want) {
			t.Errorf("queue %d: %v, want %v", i, q, want)
		}
	}
	var perms []string
	for _, q := range query("uneven", came).GetMessageQueues() {
		perms = append(perms, q.GetPermission().String())
		if len(q.GetAcceptMessageTypes()) != 4 {
			t.Errorf("a mixed topic accepts %v", q.GetAcceptMessageTypes())
		}
	}
	if got := strings.Join(perms, " "); got != "READ READ READ_WRITE" {
		t.Errorf("permissions %s", got)
	}
	if q := query("shut", came).GetMessageQueues(); len(q) != 2 || q[0].GetPermission() != v2.Permission_NONE || q[0].GetAcceptMessageTypes()[0] != v2.MessageType_MESSAGE_TYPE_UNSPECIFIED {
		t.Errorf("topic without permission: %v", q)
	}
	wantStatus(t, "unknown topic", query("nowhere", came).GetStatus(), v2.Code_TOPIC_NOT_FOUND, "nowhere")
	wantStatus(t, "system topic", query("TBW102", came).GetStatus(), v2.Code_ILLEGAL_TOPIC, "cannot access system topic")
	wantStatus(t, "illegal topic", query("a b", came).GetStatus(), v2.Code_ILLEGAL_TOPIC, "a b")
	wantStatus(t, "no topic", query("", came).GetStatus(), v2.Code_ILLEGAL_TOPIC, "")
	wantStatus(t, "long topic", query(strings.Repeat("x", 128), came).GetStatus(), v2.Code_ILLEGAL_TOPIC, "127")
}

func TestAdvertisedEndpoints(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Advertise = "203.0.113.7:8081" })
	h.topic("orders", proxy.KindNormal)
	resp, err := h.client.QueryRoute(h.as("c"), &v2.QueryRouteRequest{Topic: resource("orders"),
		Endpoints: &v2.Endpoints{Addresses: []*v2.Address{{Host: "inside", Port: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := &v2.Endpoints{Scheme: v2.AddressScheme_IPv4, Addresses: []*v2.Address{{Host: "203.0.113.7", Port: 8081}}}
	if got := resp.GetMessageQueues()[0].GetBroker().GetEndpoints(); !proto.Equal(got, want) {
		t.Errorf("endpoints %v, want %v", got, want)
	}
}

func TestQueryAssignment(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.groups["ordered"] = proxy.Group{Name: "ordered", FIFO: true, MaxAttempts: 17}
	h.routes["writeonly"] = &proxy.Route{Topic: "writeonly", Kind: proxy.KindNormal, Brokers: []proxy.BrokerQueues{{Broker: "broker-a", Read: 4, Write: 4, Writable: true}}}
	query := func(topic, group string) *v2.QueryAssignmentResponse {
		resp, err := h.client.QueryAssignment(h.as("c"), &v2.QueryAssignmentRequest{Topic: resource(topic), Group: resource(group),
			Endpoints: &v2.Endpoints{Addresses: []*v2.Address{{Host: "::1", Port: 8081}}}})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := query("orders", "unknown")
	wantStatus(t, "unknown group", resp.GetStatus(), v2.Code_OK, "OK")
	want := &v2.MessageQueue{Topic: resource("orders"), Id: -1, Permission: v2.Permission_READ_WRITE, Broker: &v2.Broker{Name: "broker-a",
		Endpoints: &v2.Endpoints{Scheme: v2.AddressScheme_IPv6, Addresses: []*v2.Address{{Host: "::1", Port: 8081}}}}}
	if len(resp.GetAssignments()) != 1 || !proto.Equal(resp.GetAssignments()[0].GetMessageQueue(), want) {
		t.Errorf("got %v, want %v", resp.GetAssignments(), want)
	}
	if got := query("orders", "ordered").GetAssignments(); len(got) != 4 || got[3].GetMessageQueue().GetId() != 3 {
		t.Errorf("FIFO group: %v", got)
	}
	wantStatus(t, "write-only topic", query("writeonly", "g").GetStatus(), v2.Code_FORBIDDEN, "no readable queue")
	wantStatus(t, "unknown topic", query("nowhere", "g").GetStatus(), v2.Code_TOPIC_NOT_FOUND, "")
	wantStatus(t, "system group", query("orders", "CID_RMQ_SYS_X").GetStatus(), v2.Code_ILLEGAL_CONSUMER_GROUP, "cannot use system consumer group")
	wantStatus(t, "long group", query("orders", strings.Repeat("g", 300)).GetStatus(), v2.Code_ILLEGAL_CONSUMER_GROUP, "")
}

func TestSendMessageRefusals(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.topic("mixed", proxy.KindMixed)
	h.routes["full"] = &proxy.Route{Topic: "full", Kind: proxy.KindNormal, Brokers: []proxy.BrokerQueues{{Broker: "broker-a", Read: 4, Write: 4, Readable: true}}}
	change := func(f func(m *v2.Message, s *v2.SystemProperties)) []*v2.Message {
		m := normal("orders", "01")
		f(m, m.SystemProperties)
		return []*v2.Message{m}
	}
	many := map[string]string{}
	for i := range 129 {
		many[strings.Repeat("k", i+1)] = "v"
	}
	for _, c := range []struct {
		name     string
		messages []*v2.Message
		code     v2.Code
		text     string
	}{
		{"no messages", nil, v2.Code_MESSAGE_CORRUPTED, "no message to send"},
		{"two topics", []*v2.Message{normal("orders", "01"), normal("mixed", "02")}, v2.Code_MESSAGE_CORRUPTED, "topic in message is not same"},
		{"illegal topic", []*v2.Message{normal("a b", "01")}, v2.Code_ILLEGAL_TOPIC, "a b"},
		{"system topic", []*v2.Message{normal("RMQ_SYS_TRANS_HALF_TOPIC", "01")}, v2.Code_ILLEGAL_TOPIC, "cannot access system topic"},
		{"unknown topic", []*v2.Message{normal("nowhere", "01")}, v2.Code_TOPIC_NOT_FOUND, "nowhere"},
		{"no writable queue", []*v2.Message{normal("full", "01")}, v2.Code_FORBIDDEN, "no writable queue"},
		{"empty body", change(func(m *v2.Message, _ *v2.SystemProperties) { m.Body = nil }), v2.Code_MESSAGE_BODY_EMPTY, "message body cannot be empty"},
		{"large body", change(func(m *v2.Message, _ *v2.SystemProperties) { m.Body = make([]byte, 4<<20+1) }), v2.Code_MESSAGE_BODY_TOO_LARGE, "4194304"},
		{"reserved property", change(func(m *v2.Message, _ *v2.SystemProperties) { m.UserProperties = map[string]string{"KEYS": "x"} }), v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "property is used by system: KEYS"},
		{"our property", change(func(m *v2.Message, _ *v2.SystemProperties) {
			m.UserProperties = map[string]string{"__BOLIDE_SRC": "x"}
		}), v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "__BOLIDE_SRC"},
		{"control in key", change(func(m *v2.Message, _ *v2.SystemProperties) { m.UserProperties = map[string]string{"a\x01b": "x"} }), v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "control"},
		{"control in value", change(func(m *v2.Message, _ *v2.SystemProperties) { m.UserProperties = map[string]string{"a": "x\u0085"} }), v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "control"},
		{"many properties", change(func(m *v2.Message, _ *v2.SystemProperties) { m.UserProperties = many }), v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "128"},
		{"large properties", change(func(m *v2.Message, _ *v2.SystemProperties) {
			m.UserProperties = map[string]string{"a": strings.Repeat("v", 16<<10)}
		}), v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "16384"},
		{"tag with bar", change(func(_ *v2.Message, s *v2.SystemProperties) { s.Tag = proto.String("a|b") }), v2.Code_ILLEGAL_MESSAGE_TAG, "|"},
		{"blank tag", change(func(_ *v2.Message, s *v2.SystemProperties) { s.Tag = proto.String("  ") }), v2.Code_ILLEGAL_MESSAGE_TAG, ""},
		{"blank key", change(func(_ *v2.Message, s *v2.SystemProperties) { s.Keys = []string{"k", " "} }), v2.Code_ILLEGAL_MESSAGE_KEY, ""},
		{"blank id", change(func(_ *v2.Message, s *v2.SystemProperties) { s.MessageId = " " }), v2.Code_ILLEGAL_MESSAGE_ID, "message id cannot be empty"},
		{"group of 64 bytes", change(func(_ *v2.Message, s *v2.SystemProperties) { s.MessageGroup = proto.String(strings.Repeat("g", 64)) }), v2.Code_ILLEGAL_MESSAGE_GROUP, "message group exceed the max size 64"},
		{"blank group", change(func(_ *v2.Message, s *v2.SystemProperties) { s.MessageGroup = proto.String("\t") }), v2.Code_ILLEGAL_MESSAGE_GROUP, ""},
		{"lite topic", change(func(_ *v2.Message, s *v2.SystemProperties) { s.LiteTopic = proto.String("a/b") }), v2.Code_ILLEGAL_LITE_TOPIC, ""},
		{"no time", change(func(_ *v2.Message, s *v2.SystemProperties) {
			s.DeliveryTimestamp = &timestamppb.Timestamp{Seconds: 1, Nanos: -1}
		}), v2.Code_ILLEGAL_DELIVERY_TIME, "-1 ns"},
		{"slow recovery", change(func(_ *v2.Message, s *v2.SystemProperties) {
			s.MessageType, s.OrphanedTransactionRecoveryDuration = v2.MessageType_TRANSACTION, durationpb.New(2*time.Hour)
		}), v2.Code_BAD_REQUEST, "3600"},
		{"FIFO to normal", change(func(_ *v2.Message, s *v2.SystemProperties) { s.MessageGroup = proto.String("g") }), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "the expected type is NORMAL, but actual type is FIFO: send it to a topic of type FIFO, or make "},
		{"sharding key to normal", change(func(m *v2.Message, _ *v2.SystemProperties) {
			m.UserProperties = map[string]string{"__SHARDINGKEY": "g"}
		}), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "actual type is FIFO"},
		{"delay to normal", change(func(_ *v2.Message, s *v2.SystemProperties) { s.DeliveryTimestamp = timestamppb.Now() }), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "actual type is DELAY"},
		{"transaction to normal", change(func(_ *v2.Message, s *v2.SystemProperties) { s.MessageType = v2.MessageType_TRANSACTION }), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "actual type is TRANSACTION"},
		{"priority to normal", change(func(_ *v2.Message, s *v2.SystemProperties) { s.Priority = proto.Int32(1) }), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "actual type is PRIORITY"},
		{"lite to normal", change(func(_ *v2.Message, s *v2.SystemProperties) { s.LiteTopic = proto.String("l") }), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "actual type is LITE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := h.sendOne(c.messages...)
			wantStatus(t, c.name, resp.GetStatus(), c.code, c.text)
			if len(resp.GetEntries()) != 0 {
				t.Errorf("entries %v", resp.GetEntries())
			}
		})
	}
	if n := len(h.queues["orders"]); n != 0 {
		t.Errorf("%d refused messages were stored", n)
	}
}

func TestSendMessage(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindMixed)
	m := normal("orders", "01AB")
	s := m.SystemProperties
	m.UserProperties = map[string]string{"color": "grün"}
	s.Tag, s.Keys, s.MessageGroup = proto.String("a"), []string{"k1", "k2"}, proto.String(strings.Repeat("g", 63))
	s.BornTimestamp, s.BornHost, s.BodyEncoding = timestamppb.New(time.UnixMilli(1_700_000_000_001)), "host-1", v2.Encoding_GZIP
	resp := h.sendOne(m)
	wantStatus(t, "send", resp.GetStatus(), v2.Code_OK, "OK")
	if len(resp.GetEntries()) != 1 || !proto.Equal(resp.GetEntries()[0], &v2.SendResultEntry{Status: ok, MessageId: "01AB", TransactionId: "01AB"}) {
		t.Errorf("entries %v", resp.GetEntries())
	}
	stored := h.queues["orders"][0].message
	for name, want := range map[string]string{"color": "grün", "TAGS": "a", "KEYS": "k1 k2", "UNIQ_KEY": "01AB", "PGROUP": "orders", "RECONSUME_TIME": "0",
		"__SHARDINGKEY": strings.Repeat("g", 63), "__BORNHOST": "host-1", "BORN_TIMESTAMP": "1700000000001"} {
		if got := stored.Properties.Value(name); got != want {
			t.Errorf("property %s: %q, want %q", name, got, want)
		}
	}
	if stored.SysFlag&1 == 0 || stored.BornTimestamp != 1_700_000_000_001 || string(stored.Body) != "body of 01AB" {
		t.Errorf("stored %+v", stored)
	}
	// Every message of a group lands in the same queue, the others go round.
	first := stored.QueueID
	queues := map[int32]bool{}
	for range 8 {
		h.sendOne(m)
		h.sendOne(normal("orders", "02"))
	}
	for _, r := range h.queues["orders"] {
		switch {
		case r.message.Properties.Has("__SHARDINGKEY"):
			if r.message.QueueID != first {
				t.Errorf("group in queue %d, before in %d", r.message.QueueID, first)
			}
		default:
			queues[r.message.QueueID] = true
		}
	}
	if len(queues) != 4 {
		t.Errorf("messages without group went to %v", queues)
	}
}

func TestSendBatchGetsOneEntry(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.sendOne(normal("orders", "00"))
	resp := h.sendOne(normal("orders", "01"), normal("orders", "02"), normal("orders", "03"))
	wantStatus(t, "send", resp.GetStatus(), v2.Code_OK, "OK")
	if len(resp.GetEntries()) != 1 || !proto.Equal(resp.GetEntries()[0], &v2.SendResultEntry{Status: ok, MessageId: "01,02,03", TransactionId: "01", Offset: 1}) {
		t.Errorf("entries %v", resp.GetEntries())
	}
	q := h.queues["orders"]
	if len(q) != 4 || q[1].message.QueueID != q[3].message.QueueID || q[3].message.UniqueID() != "03" || string(q[2].message.Body) != "body of 02" {
		t.Errorf("stored %d messages", len(q))
	}
}

func TestSendErrors(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	for _, c := range []struct {
		err  error
		code v2.Code
	}{
		{proxy.ErrBusy, v2.Code_TOO_MANY_REQUESTS},
		{proxy.ErrFlushTimeout, v2.Code_MASTER_PERSISTENCE_TIMEOUT},
		{proxy.ErrSlaveTimeout, v2.Code_SLAVE_PERSISTENCE_TIMEOUT},
		{proxy.ErrSlaveUnavailable, v2.Code_HA_NOT_AVAILABLE},
		{proxy.ErrUnsupported, v2.Code_NOT_IMPLEMENTED},
		{errors.New("disk on fire"), v2.Code_INTERNAL_SERVER_ERROR},
	} {
		h.sendErr = c.err
		wantStatus(t, c.err.Error(), h.sendOne(normal("orders", "01")).GetStatus(), c.code, c.err.Error())
	}
}

func (h *harness) receiveRequest(topic string) *v2.ReceiveMessageRequest {
	return &v2.ReceiveMessageRequest{Group: resource("g"), MessageQueue: &v2.MessageQueue{Topic: resource(topic), Id: -1, Broker: &v2.Broker{Name: "broker-a"}},
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}, BatchSize: 32, InvisibleDuration: durationpb.New(30 * time.Second)}
}

// receive reads a whole answer and checks its shape.
func (h *harness) receive(ctx context.Context, req *v2.ReceiveMessageRequest) (*v2.Status, []*v2.Message) {
	h.t.Helper()
	stream, err := h.client.ReceiveMessage(ctx, req)
	if err != nil {
		h.t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		h.t.Fatal(err)
	}
	if first.GetStatus() == nil {
		h.t.Errorf("the answer begins with %v", first)
	}
	var messages []*v2.Message
	ended := false
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			h.t.Fatal(err)
		}
		switch {
		case ended:
			h.t.Errorf("after the delivery timestamp: %v", resp)
		case resp.GetMessage() != nil:
			messages = append(messages, resp.GetMessage())
		case resp.GetDeliveryTimestamp() != nil:
			ended = true
		default:
			h.t.Errorf("unexpected %v", resp)
		}
	}
	if !ended {
		h.t.Error("no delivery timestamp")
	}
	return first.GetStatus(), messages
}

func TestReceiveAckAndChange(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	for _, id := range []string{"01", "02", "03"} {
		h.sendOne(normal("orders", id))
	}
	req := h.receiveRequest("orders")
	req.BatchSize = 40 // more than 32 is accepted and means 32
	st, messages := h.receive(h.as("c"), req)
	wantStatus(t, "receive", st, v2.Code_OK, "OK")
	if len(messages) != 3 || string(messages[1].GetBody()) != "body of 02" || messages[0].GetSystemProperties().GetDeliveryAttempt() != 1 {
		t.Fatalf("received %v", messages)
	}
	if q := h.pops[0]; q.Max != 32 || q.Group != "g" || q.Holder != "c" || q.QueueID != -1 || q.InvisibleTime != 30*time.Second || q.AutoRenew || q.PollTime != 20*time.Second {
		t.Errorf("pop request %+v", q)
	}
	if h.released != 1 {
		t.Errorf("released %d times", h.released)
	}
	handle := func(i int) string { return messages[i].GetSystemProperties().GetReceiptHandle() }
	ack := func(handles ...string) *v2.AckMessageResponse {
		a := &v2.AckMessageRequest{Group: resource("g"), Topic: resource("orders")}
		for _, text := range handles {
			a.Entries = append(a.Entries, &v2.AckMessageEntry{MessageId: "m", ReceiptHandle: text})
		}
		resp, err := h.client.AckMessage(h.as("c"), a)
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.GetEntries()) != len(handles) {
			t.Errorf("%d entries for %d", len(resp.GetEntries()), len(handles))
		}
		return resp
	}
	wantStatus(t, "ack", ack(handle(0)).GetStatus(), v2.Code_OK, "OK")
	wantStatus(t, "ack again", ack(handle(0)).GetStatus(), v2.Code_OK, "OK")
	wantStatus(t, "no entries", ack().GetStatus(), v2.Code_INTERNAL_SERVER_ERROR, "ack message result is empty")

	change, err := h.client.ChangeInvisibleDuration(h.as("c"), &v2.ChangeInvisibleDurationRequest{Group: resource("g"), Topic: resource("orders"),
		ReceiptHandle: handle(1), InvisibleDuration: durationpb.New(time.Minute), MessageId: "02"})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "change", change.GetStatus(), v2.Code_OK, "OK")
	old, _ := receipt.Parse(handle(1))
	now, err := receipt.Parse(change.GetReceiptHandle())
	if err != nil || now.PopTime <= old.PopTime || now.StartOffset != old.Offset || now.InvisibleTime != 60_000 || now.LogOffset != old.LogOffset {
		t.Errorf("new handle %s of %s: %v", change.GetReceiptHandle(), handle(1), err)
	}
	// R056: bad handles are told apart from failures, and do not spoil good ones.
	mixed := ack(handle(1), "garbage", "0 1 2 3 0 elsewhere 0 0 0", change.GetReceiptHandle())
	wantStatus(t, "mixed", mixed.GetStatus(), v2.Code_MULTIPLE_RESULTS, "MULTIPLE_RESULTS")
	for i, want := range []v2.Code{v2.Code_INVALID_RECEIPT_HANDLE, v2.Code_INVALID_RECEIPT_HANDLE, v2.Code_INVALID_RECEIPT_HANDLE, v2.Code_OK} {
		if got := mixed.GetEntries()[i].GetStatus().GetCode(); got != want {
			t.Errorf("entry %d: %v, want %v", i, got, want)
		}
	}
	wantStatus(t, "garbage", ack("garbage").GetStatus(), v2.Code_INVALID_RECEIPT_HANDLE, "illegal receipt handle")
}

func TestChangeInvisibleRefusals(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	for _, c := range []struct {
		name string
		d    time.Duration
		text string
		code v2.Code
	}{
		{"13 h", 13 * time.Hour, "0 1 2 3 0 broker-a 0 0 0", v2.Code_ILLEGAL_INVISIBLE_TIME},
		{"negative", -time.Second, "0 1 2 3 0 broker-a 0 0 0", v2.Code_ILLEGAL_INVISIBLE_TIME},
		{"garbage", time.Second, "garbage", v2.Code_INVALID_RECEIPT_HANDLE},
		{"no such delivery", time.Second, "0 1 2 3 0 broker-a 0 5 0", v2.Code_INVALID_RECEIPT_HANDLE},
	} {
		resp, err := h.client.ChangeInvisibleDuration(h.as("c"), &v2.ChangeInvisibleDurationRequest{Group: resource("g"), Topic: resource("orders"),
			ReceiptHandle: c.text, InvisibleDuration: durationpb.New(c.d)})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, c.name, resp.GetStatus(), c.code, "")
	}
}

func TestReceiveRefusals(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.routes["writeonly"] = &proxy.Route{Topic: "writeonly", Kind: proxy.KindNormal, Brokers: []proxy.BrokerQueues{{Broker: "broker-a", Read: 4, Write: 4, Writable: true}}}
	short, cancel := context.WithTimeout(h.as("c"), 4*time.Second)
	defer cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		change func(*v2.ReceiveMessageRequest)
		code   v2.Code
		text   string
	}{
		{"4 s left", short, func(*v2.ReceiveMessageRequest) {}, v2.Code_ILLEGAL_POLLING_TIME, "polling"},
		{"unknown topic", h.as("c"), func(r *v2.ReceiveMessageRequest) { r.MessageQueue.Topic = resource("nowhere") }, v2.Code_TOPIC_NOT_FOUND, "nowhere"},
		{"system topic", h.as("c"), func(r *v2.ReceiveMessageRequest) { r.MessageQueue.Topic = resource("TBW102") }, v2.Code_ILLEGAL_TOPIC, ""},
		{"no group", h.as("c"), func(r *v2.ReceiveMessageRequest) { r.Group = nil }, v2.Code_ILLEGAL_CONSUMER_GROUP, ""},
		{"5 s invisible", h.as("c"), func(r *v2.ReceiveMessageRequest) { r.InvisibleDuration = durationpb.New(5 * time.Second) }, v2.Code_ILLEGAL_INVISIBLE_TIME, "the invisibleTime is too small. min is 10000"},
		{"13 h invisible", h.as("c"), func(r *v2.ReceiveMessageRequest) { r.InvisibleDuration = durationpb.New(13 * time.Hour) }, v2.Code_ILLEGAL_INVISIBLE_TIME, "the invisibleTime is too large. max is 43200000"},
		{"SQL", h.as("c"), func(r *v2.ReceiveMessageRequest) {
			r.FilterExpression = &v2.FilterExpression{Type: v2.FilterType_SQL, Expression: "((("}
		}, v2.Code_ILLEGAL_FILTER_EXPRESSION, ""},
		{"no readable queue", h.as("c"), func(r *v2.ReceiveMessageRequest) { r.MessageQueue.Topic = resource("writeonly") }, v2.Code_FORBIDDEN, "no readable queue"},
	} {
		req := h.receiveRequest("orders")
		c.change(req)
		st, messages := h.receive(c.ctx, req)
		wantStatus(t, c.name, st, c.code, c.text)
		if len(messages) != 0 {
			t.Errorf("%s: messages", c.name)
		}
	}
}

// R045: a receive with auto-renewal needs no invisible time.
func TestReceiveWithAutoRenewal(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.sendOne(normal("orders", "01"))
	req := h.receiveRequest("orders")
	req.InvisibleDuration, req.AutoRenew = nil, true
	st, messages := h.receive(h.as("c"), req)
	wantStatus(t, "receive", st, v2.Code_OK, "")
	if len(messages) != 1 || !h.pops[0].AutoRenew || h.pops[0].InvisibleTime != time.Minute {
		t.Errorf("%d messages, pop %+v", len(messages), h.pops[0])
	}
}

func TestPollTime(t *testing.T) {
	const none = -1
	s := time.Second
	for _, c := range []struct {
		name                 string
		asked, remaining, rt time.Duration
		version              string
		want                 time.Duration
		code                 v2.Code
	}{
		{"what the deadline leaves", 0, 9 * s, 3 * s, "5.0.8", 7500 * time.Millisecond, 0},
		{"asked", 15 * s, 18 * s, 3 * s, "5.0.8", 15 * s, 0},
		{"asked too little", 1 * s, 18 * s, 3 * s, "5.0.8", 5 * s, 0},
		{"asked too much", time.Hour, 2 * time.Hour, 3 * s, "5.0.8", 20 * s, 0},
		{"no deadline", 0, none, 3 * s, "", 20 * s, 0},
		{"asked, no deadline", 6 * s, none, 3 * s, "", 6 * s, 0},
		{"asked for all that is left", 15 * s, 15 * s, 3 * s, "5.0.8", 15*s - answerMargin, 0},
		{"asked for more than is left", 15 * s, 6 * s, 3 * s, "5.0.8", 6*s - answerMargin, 0},
		{"just five seconds, some gone", 5 * s, 4900 * time.Millisecond, 3 * s, "5.0.8", 4900*time.Millisecond - answerMargin, 0},
		{"too little left", 5 * s, 4 * s, 3 * s, "5.0.8", 0, v2.Code_ILLEGAL_POLLING_TIME},
		{"too little left, old client", 5 * s, 4 * s, 3 * s, "5.0.2", 0, v2.Code_BAD_REQUEST},
		{"too little left, unknown client", 5 * s, 4 * s, 3 * s, "", 0, v2.Code_BAD_REQUEST},
	} {
		got, err := polls{5 * s, 20 * s}.time(c.asked, c.remaining, c.rt, c.version)
		code, _, _ := statusOf(err)
		if c.code == 0 {
			c.code = v2.Code_OK
		}
		if got != c.want || code != c.code {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, code, c.want, c.code)
		}
	}
}

func TestForwardToDeadLetterQueue(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.sendOne(normal("orders", "01"))
	_, messages := h.receive(h.as("c"), h.receiveRequest("orders"))
	forward := func(handle string) *v2.Status {
		resp, err := h.client.ForwardMessageToDeadLetterQueue(h.as("c"), &v2.ForwardMessageToDeadLetterQueueRequest{
			Group: resource("g"), Topic: resource("orders"), ReceiptHandle: handle, MessageId: "01", DeliveryAttempt: 17, MaxDeliveryAttempts: 17})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	wantStatus(t, "garbage", forward("garbage"), v2.Code_INVALID_RECEIPT_HANDLE, "")
	wantStatus(t, "eight fields", forward("0 1 2 3 0 broker-a 0 0"), v2.Code_INVALID_RECEIPT_HANDLE, "log offset")
	wantStatus(t, "forward", forward(messages[0].GetSystemProperties().GetReceiptHandle()), v2.Code_OK, "OK")
	if len(h.dead) != 1 || h.dead[0].LogOffset != 0 {
		t.Errorf("dead letters %v", h.dead)
	}
}

func TestWhatIsNotServedSaysSo(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.topic("later", proxy.KindDelay)
	end := func(id string) *v2.Status {
		resp, err := h.client.EndTransaction(h.as("c"), &v2.EndTransactionRequest{Topic: resource("orders"), MessageId: "01", TransactionId: id, Resolution: v2.TransactionResolution_COMMIT})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	wantStatus(t, "blank transaction", end(" "), v2.Code_INVALID_TRANSACTION_ID, "")
	wantStatus(t, "transaction", end("x"), v2.Code_INVALID_TRANSACTION_ID, "unknown")
	recall := func(topic string) *v2.Status {
		resp, err := h.client.RecallMessage(h.as("c"), &v2.RecallMessageRequest{Topic: resource(topic), RecallHandle: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	wantStatus(t, "recall on a normal topic", recall("orders"), v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "")
	wantStatus(t, "recall", recall("later"), v2.Code_BAD_REQUEST, "handle")
}

func TestLiteSubscriptions(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindLite)
	sync := func(tune func(r *v2.SyncLiteSubscriptionRequest)) *v2.Status {
		req := &v2.SyncLiteSubscriptionRequest{Topic: resource("orders"), Group: resource("g"), LiteTopicSet: []string{"l"}}
		tune(req)
		resp, err := h.client.SyncLiteSubscription(h.as("c"), req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	name := func(name string) func(r *v2.SyncLiteSubscriptionRequest) {
		return func(r *v2.SyncLiteSubscriptionRequest) { r.LiteTopicSet = []string{name} }
	}
	wantStatus(t, "bad name", sync(name("a/b")), v2.Code_ILLEGAL_LITE_TOPIC, "letters")
	wantStatus(t, "blank", sync(name(" ")), v2.Code_ILLEGAL_LITE_TOPIC, "blank")
	wantStatus(t, "long", sync(name(strings.Repeat("l", 65))), v2.Code_ILLEGAL_LITE_TOPIC, "64")
	wantStatus(t, "negative offset", sync(func(r *v2.SyncLiteSubscriptionRequest) {
		r.OffsetOption = &v2.OffsetOption{OffsetType: &v2.OffsetOption_Offset{Offset: -1}}
	}), v2.Code_BAD_REQUEST, "-1")
	wantStatus(t, "unknown action", sync(func(r *v2.SyncLiteSubscriptionRequest) { r.Action = 99 }), v2.Code_BAD_REQUEST, "99")
	if len(h.lites) > 0 {
		t.Fatalf("the broker was told of %+v", h.lites)
	}
	wantStatus(t, "good", sync(func(r *v2.SyncLiteSubscriptionRequest) {
		r.Action, r.LiteTopicSet = v2.LiteSubscriptionAction_PARTIAL_ADD, []string{"a", "b"}
		r.OffsetOption = &v2.OffsetOption{OffsetType: &v2.OffsetOption_TailN{TailN: 3}}
	}), v2.Code_OK, "OK")
	if want := (proxy.LiteSubscription{Action: lite.PartialAdd, ClientID: "c", Group: "g", Topic: "orders", Lites: []string{"a", "b"}, From: lite.From{Kind: lite.FromTail, Value: 3}}); !reflect.DeepEqual(h.lites[0], want) {
		t.Errorf("the broker was told %+v", h.lites[0])
	}
	for of, want := range map[error]v2.Code{proxy.ErrLiteSubscriptionQuota: v2.Code_LITE_SUBSCRIPTION_QUOTA_EXCEEDED, proxy.ErrIllegalLite: v2.Code_ILLEGAL_TOPIC,
		proxy.ErrUnfitLite: v2.Code_BAD_REQUEST, proxy.ErrGroupNotFound: v2.Code_CONSUMER_GROUP_NOT_FOUND, proxy.ErrTopicNotFound: v2.Code_TOPIC_NOT_FOUND} {
		h.liteErr = of
		wantStatus(t, of.Error(), sync(name("l")), want, of.Error())
	}
}

// TestHugeHeadersAreRefused: the headers of a call are in memory while it waits.
func TestHugeHeadersAreRefused(t *testing.T) {
	h := newHarness(t)
	h.topic("t", proxy.KindNormal)
	ask := func(bytes int) error {
		_, err := h.client.QueryRoute(h.as("c", "x-mq-session-token", strings.Repeat("a", bytes)), &v2.QueryRouteRequest{Topic: resource("t")})
		return err
	}
	if err := ask(8 << 10); err != nil {
		t.Error(err)
	}
	if ask(64<<10) == nil {
		t.Errorf("headers of more than %d bytes are taken", 64<<10)
	}
	if err := ask(0); err != nil {
		t.Error("another call noticed:", err)
	}
}
