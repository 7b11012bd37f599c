package grpcv2

import (
	"context"
	"strings"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/proxy"
)

// eventually polls an actual condition, with a generous limit.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func producerSettings(topics ...string) *v2.Settings {
	p := &v2.Publishing{}
	for _, name := range topics {
		p.Topics = append(p.Topics, resource(name))
	}
	return &v2.Settings{ClientType: v2.ClientType_PRODUCER.Enum(), PubSub: &v2.Settings_Publishing{Publishing: p},
		AccessPoint:    &v2.Endpoints{Addresses: []*v2.Address{{Host: "127.0.0.1", Port: 8081}}},
		RequestTimeout: durationpb.New(4 * time.Second), UserAgent: &v2.UA{Language: v2.Language_GOLANG, Version: "5.1.4"}}
}

func consumerSettings(kind v2.ClientType, group string) *v2.Settings {
	return &v2.Settings{ClientType: kind.Enum(), UserAgent: &v2.UA{Language: v2.Language_JAVA}, RequestTimeout: durationpb.New(3 * time.Second),
		PubSub: &v2.Settings_Subscription{Subscription: &v2.Subscription{Group: resource(group), Subscriptions: []*v2.SubscriptionEntry{
			{Topic: resource("orders"), Expression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "a||b"}}}}}}
}

type telemetry = grpc.BidiStreamingClient[v2.TelemetryCommand, v2.TelemetryCommand]

func (h *harness) telemetry(ctx context.Context, s *v2.Settings) (telemetry, *v2.TelemetryCommand, error) {
	h.t.Helper()
	stream, err := h.client.Telemetry(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: s}}); err != nil {
		h.t.Fatal(err)
	}
	cmd, err := stream.Recv()
	return stream, cmd, err
}

func (h *harness) joinedClient(id string) *proxy.Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joined[id]
}

func TestProducerSettings(t *testing.T) {
	h := newHarness(t)
	in := producerSettings("orders")
	_, cmd, err := h.telemetry(h.as("p1"), in)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "settings", cmd.GetStatus(), v2.Code_OK, "OK")
	want := proto.Clone(in).(*v2.Settings)
	want.AccessPoint.Scheme = v2.AddressScheme_IPv4 // R138
	want.Metric = &v2.Metric{}
	want.GetPublishing().MaxBodySize, want.GetPublishing().ValidateMessageType = 4<<20, true
	want.BackoffPolicy = &v2.RetryPolicy{MaxAttempts: 3, Strategy: &v2.RetryPolicy_ExponentialBackoff{ExponentialBackoff: &v2.ExponentialBackoff{
		Initial: durationpb.New(10 * time.Millisecond), Max: durationpb.New(time.Second), Multiplier: 2}}}
	if !proto.Equal(cmd.GetSettings(), want) {
		t.Errorf("got  %v\nwant %v", cmd.GetSettings(), want)
	}
	c := h.joinedClient("p1")
	if c == nil || c.Settings.Kind != proxy.Producer || len(c.Settings.Topics) != 1 || c.Language != "GO" || c.Version != "5.1.4" || c.Settings.RequestTimeout != 4*time.Second {
		t.Errorf("joined %+v", c)
	}
}

func TestConsumerSettings(t *testing.T) {
	h := newHarness(t)
	h.groups["ordered"] = proxy.Group{Name: "ordered", FIFO: true, MaxAttempts: 4, LiteQuota: 2000,
		Backoff: proxy.Backoff{Initial: 5 * time.Second, Max: 2 * time.Hour, Multiplier: 2}}
	h.groups["lite"] = proxy.Group{Name: "lite", LiteTopic: "parent", MaxAttempts: proxy.DefaultMaxAttempts, Backoff: proxy.DefaultBackoff, LiteQuota: 2000}
	for _, kind := range []v2.ClientType{v2.ClientType_PUSH_CONSUMER, v2.ClientType_SIMPLE_CONSUMER, v2.ClientType_LITE_PUSH_CONSUMER, v2.ClientType_LITE_SIMPLE_CONSUMER} {
		group := "fresh"
		if kind == v2.ClientType_LITE_PUSH_CONSUMER || kind == v2.ClientType_LITE_SIMPLE_CONSUMER {
			group = "lite"
		}
		in := consumerSettings(kind, group)
		_, cmd, err := h.telemetry(h.as("c-"+kind.String()), in)
		if err != nil {
			t.Fatal(err)
		}
		want := proto.Clone(in).(*v2.Settings)
		want.Metric = &v2.Metric{}
		sub := want.GetSubscription()
		sub.Fifo, sub.ReceiveBatchSize, sub.LongPollingTimeout = proto.Bool(false), proto.Int32(32), durationpb.New(20*time.Second)
		sub.LiteSubscriptionQuota, sub.MaxLiteTopicSize = proto.Int32(2000), proto.Int32(64)
		list := &v2.CustomizedBackoff{}
		for _, d := range proxy.DefaultBackoff.Next {
			list.Next = append(list.Next, durationpb.New(d))
		}
		want.BackoffPolicy = &v2.RetryPolicy{MaxAttempts: 17, Strategy: &v2.RetryPolicy_CustomizedBackoff{CustomizedBackoff: list}}
		if !proto.Equal(cmd.GetSettings(), want) {
			t.Errorf("%v:\ngot  %v\nwant %v", kind, cmd.GetSettings(), want)
		}
		if c := h.joinedClient("c-" + kind.String()); c == nil || c.Settings.Group != group || c.Settings.Subscriptions[0] != (proxy.Subscription{Topic: "orders", Expression: "a||b"}) {
			t.Errorf("%v: joined %+v", kind, c)
		}
	}
	_, cmd, err := h.telemetry(h.as("o"), consumerSettings(v2.ClientType_PUSH_CONSUMER, "ordered"))
	if err != nil {
		t.Fatal(err)
	}
	policy := cmd.GetSettings().GetBackoffPolicy()
	if !cmd.GetSettings().GetSubscription().GetFifo() || policy.GetMaxAttempts() != 4 || policy.GetExponentialBackoff().GetInitial().AsDuration() != 5*time.Second {
		t.Errorf("settings of an ordered group: %v", cmd)
	}
}

func TestNodeGetsAnExponentialPolicy(t *testing.T) {
	p := consumerBackoff(proxy.Group{MaxAttempts: 17, Backoff: proxy.DefaultBackoff}, v2.Language_NODE_JS)
	e := p.GetExponentialBackoff()
	if p.GetMaxAttempts() != 17 || e.GetInitial().AsDuration() != time.Second || e.GetMax().AsDuration() != 2*time.Hour || e.GetMultiplier() != 2 {
		t.Errorf("policy %v", p)
	}
}

func TestBadSettingsEndTheStream(t *testing.T) {
	h := newHarness(t)
	for _, c := range []struct {
		name string
		s    *v2.Settings
		text string
	}{
		{"nothing", &v2.Settings{}, "there is no publishing or subscription data in settings"},
		{"bad topic", producerSettings("a b"), "process client telemetryCommand failed. "},
		{"bad group", consumerSettings(v2.ClientType_PUSH_CONSUMER, "a b"), "process client telemetryCommand failed. "},
		{"a producer that subscribes", consumerSettings(v2.ClientType_PRODUCER, "g"), "PRODUCER"},
	} {
		_, cmd, err := h.telemetry(h.as("c"), c.s)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, %v", c.name, cmd, err)
		}
	}
}

func TestPresence(t *testing.T) {
	h := newHarness(t)
	beat := func(req *v2.HeartbeatRequest) *v2.Status {
		resp, err := h.client.Heartbeat(h.as("c"), req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	end := func() *v2.Status {
		resp, err := h.client.NotifyClientTermination(h.as("c"), &v2.NotifyClientTerminationRequest{Group: resource("g")})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	const unknown = "cannot find client settings for this client"
	wantStatus(t, "heartbeat of a stranger", beat(&v2.HeartbeatRequest{}), v2.Code_UNRECOGNIZED_CLIENT_TYPE, unknown)
	wantStatus(t, "a producer without settings", beat(&v2.HeartbeatRequest{ClientType: v2.ClientType_PRODUCER}), v2.Code_UNRECOGNIZED_CLIENT_TYPE, unknown)
	wantStatus(t, "termination of a stranger", end(), v2.Code_UNRECOGNIZED_CLIENT_TYPE, unknown)

	ctx, cancel := context.WithCancel(h.as("c"))
	if _, _, err := h.telemetry(ctx, consumerSettings(v2.ClientType_PUSH_CONSUMER, "g")); err != nil {
		t.Fatal(err)
	}
	consumer := &v2.HeartbeatRequest{ClientType: v2.ClientType_PUSH_CONSUMER, Group: resource("g")}
	wantStatus(t, "heartbeat", beat(consumer), v2.Code_OK, "OK")
	wantStatus(t, "heartbeat of a bad group", beat(&v2.HeartbeatRequest{Group: resource("a b")}), v2.Code_ILLEGAL_CONSUMER_GROUP, "")

	// A second stream of the same client takes the first one's place; the first one's end
	// changes nothing.
	if _, _, err := h.telemetry(h.as("c"), consumerSettings(v2.ClientType_PUSH_CONSUMER, "g")); err != nil {
		t.Fatal(err)
	}
	second := h.joinedClient("c").Stream
	cancel()
	third, cancelThird := context.WithCancel(h.as("d"))
	if _, _, err := h.telemetry(third, consumerSettings(v2.ClientType_SIMPLE_CONSUMER, "g")); err != nil {
		t.Fatal(err)
	}
	cancelThird()
	eventually(t, "the broker hears that d is gone", func() bool { return h.joinedClient("d") == nil })
	if c := h.joinedClient("c"); c == nil || c.Stream != second {
		t.Errorf("joined %+v", c)
	}
	// d's settings are kept for its heartbeats: it may open its stream minutes later.
	if c := h.proxy.Client("d"); c == nil || c.Stream != nil || c.Settings.Group != "g" {
		t.Errorf("kept %+v", c)
	}
	if resp, err := h.client.Heartbeat(h.as("d"), consumer); err != nil || resp.GetStatus().GetCode() != v2.Code_OK {
		t.Errorf("%v, %v", resp, err)
	}
	if c := h.joinedClient("d"); c == nil || len(c.Settings.Subscriptions) != 1 {
		t.Errorf("joined %+v", c)
	}

	wantStatus(t, "termination", end(), v2.Code_OK, "OK")
	if h.joinedClient("c") != nil || h.proxy.Client("c") != nil {
		t.Error("still there after its termination")
	}
	// Without settings a consumer's heartbeat counts it as there all the same.
	wantStatus(t, "heartbeat without settings", beat(consumer), v2.Code_OK, "OK")
	if c := h.joinedClient("c"); c == nil || !c.Guessed || c.Settings.Group != "g" || c.Settings.Kind != proxy.PushConsumer {
		t.Errorf("joined %+v", c)
	}
}

func TestCommands(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	h.sendOne(normal("orders", "01"))
	record := h.queues["orders"][0].bytes
	ctx, cancel := context.WithCancel(h.as("c"))
	stream, _, err := h.telemetry(ctx, consumerSettings(v2.ClientType_PUSH_CONSUMER, "g"))
	if err != nil {
		t.Fatal(err)
	}
	c := h.joinedClient("c")
	type result struct {
		text    string
		verdict proxy.Verdict
		err     error
	}
	results := make(chan result, 1)

	go func() {
		text, err := c.Stream.StackTrace(h.as("x"))
		results <- result{text: text, err: err}
	}()
	cmd, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	nonce := cmd.GetPrintThreadStackTraceCommand().GetNonce()
	for _, n := range []string{"stale", nonce} {
		if err := stream.Send(&v2.TelemetryCommand{Status: ok, Command: &v2.TelemetryCommand_ThreadStackTrace{
			ThreadStackTrace: &v2.ThreadStackTrace{Nonce: n, ThreadStackTrace: proto.String("main at " + n)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if r := <-results; r.err != nil || r.text != "main at "+nonce {
		t.Errorf("stack trace %q, %v", r.text, r.err)
	}

	for code, want := range map[v2.Code]proxy.Verdict{v2.Code_OK: proxy.VerdictConsumed, v2.Code_FAILED_TO_CONSUME_MESSAGE: proxy.VerdictFailed,
		v2.Code_MESSAGE_CORRUPTED: proxy.VerdictCorrupted, v2.Code_NOT_IMPLEMENTED: proxy.VerdictNone} {
		go func() {
			v, err := c.Stream.Verify(h.as("x"), "orders", record)
			results <- result{verdict: v, err: err}
		}()
		cmd, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		verify := cmd.GetVerifyMessageCommand()
		if string(verify.GetMessage().GetBody()) != "body of 01" || verify.GetMessage().GetSystemProperties().GetMessageId() != "01" {
			t.Errorf("verify %v", verify)
		}
		if err := stream.Send(&v2.TelemetryCommand{Status: &v2.Status{Code: code}, Command: &v2.TelemetryCommand_VerifyMessageResult{
			VerifyMessageResult: &v2.VerifyMessageResult{Nonce: verify.GetNonce()}}}); err != nil {
			t.Fatal(err)
		}
		if r := <-results; r.err != nil || r.verdict != want {
			t.Errorf("%v: verdict %v, %v", code, r.verdict, r.err)
		}
	}

	if err := c.Stream.Recover("orders", record, "01"); err != nil {
		t.Fatal(err)
	}
	if cmd, err := stream.Recv(); err != nil || cmd.GetRecoverOrphanedTransactionCommand().GetTransactionId() != "01" {
		t.Errorf("%v, %v", cmd, err)
	}
	if err := c.Stream.Reconnect(); err != nil {
		t.Fatal(err)
	}
	if cmd, err := stream.Recv(); err != nil || cmd.GetReconnectEndpointsCommand() == nil {
		t.Errorf("%v, %v", cmd, err)
	}

	// Who waits for an answer when the stream ends is told.
	go func() {
		_, err := c.Stream.StackTrace(h.as("x"))
		results <- result{err: err}
	}()
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if r := <-results; r.err == nil {
		t.Error("no error")
	}
	eventually(t, "the stream is gone", func() bool { return h.joinedClient("c") == nil })
	if _, err := c.Stream.StackTrace(h.as("x")); err == nil {
		t.Error("no error after the end")
	}
	if _, err := c.Stream.Verify(h.as("x"), "orders", []byte("no record")); err == nil {
		t.Error("no error for a broken record")
	}
}
