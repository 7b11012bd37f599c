package grpcv2

import (
	"context"
	"strings"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/proxy"
)

// Every limit that the defaults draw can be drawn elsewhere: what clients are told and what
// the service refuses follow the settings of rmq-proxy.json.
func TestLimitsAreSettings(t *testing.T) {
	c := config.DefaultProxy()
	settings := map[string]string{"enableTopicMessageTypeCheck": "false", "maxMessageSize": "2048", "maxUserPropertySize": "100", "userPropertyMaxNum": "2",
		"maxMessageGroupSize": "10", "minInvisibleTimeMillsForRecv": "2000", "maxInvisibleTimeMills": "5000",
		"grpcClientConsumerMinLongPollingTimeoutMillis": "1000", "grpcClientConsumerMaxLongPollingTimeoutMillis": "7000",
		"grpcClientConsumerLongPollingBatchSize": "16", "defaultInvisibleTimeMills": "33000"}
	for _, p := range config.List(&c) {
		if _, ok := settings[p.Name]; !ok && p.Name != "maxDelayTimeMills" { // idle
			t.Errorf("nothing shows what %s does", p.Name)
		}
	}
	if err := config.Apply(settings, &c); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, func(o *Options) { o.Config = &c })
	h.topic("orders", proxy.KindNormal)

	for _, c := range []struct {
		name   string
		change func(*v2.Message, *v2.SystemProperties)
		code   v2.Code
		text   string
	}{
		{"within all limits, of another type", func(m *v2.Message, s *v2.SystemProperties) {
			m.Body, m.UserProperties, s.MessageGroup = make([]byte, 2048), map[string]string{"a": strings.Repeat("v", 98), "b": ""}, proto.String("g23456789")
		}, v2.Code_OK, ""},
		{"body", func(m *v2.Message, _ *v2.SystemProperties) { m.Body = make([]byte, 2049) }, v2.Code_MESSAGE_BODY_TOO_LARGE, "2048"},
		{"size of properties", func(m *v2.Message, _ *v2.SystemProperties) {
			m.UserProperties = map[string]string{"a": strings.Repeat("v", 100)}
		}, v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "100"},
		{"number of properties", func(m *v2.Message, _ *v2.SystemProperties) {
			m.UserProperties = map[string]string{"a": "", "b": "", "c": ""}
		}, v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "2"},
		{"message group", func(_ *v2.Message, s *v2.SystemProperties) { s.MessageGroup = proto.String("g234567890") }, v2.Code_ILLEGAL_MESSAGE_GROUP, "10"},
	} {
		m := normal("orders", "01")
		c.change(m, m.SystemProperties)
		wantStatus(t, c.name, h.sendOne(m).GetStatus(), c.code, c.text)
	}

	_, cmd, err := h.telemetry(h.as("p"), producerSettings("orders"))
	if p := cmd.GetSettings().GetPublishing(); err != nil || p.GetMaxBodySize() != 2048 || p.GetValidateMessageType() {
		t.Errorf("producers are told %v, %v", p, err)
	}
	_, cmd, err = h.telemetry(h.as("c"), consumerSettings(v2.ClientType_PUSH_CONSUMER, "g"))
	if s := cmd.GetSettings().GetSubscription(); err != nil || s.GetReceiveBatchSize() != 16 || s.GetLongPollingTimeout().AsDuration() != 7*time.Second {
		t.Errorf("consumers are told %v, %v", s, err)
	}

	for d, code := range map[time.Duration]v2.Code{time.Second: v2.Code_ILLEGAL_INVISIBLE_TIME, 6 * time.Second: v2.Code_ILLEGAL_INVISIBLE_TIME, 3 * time.Second: v2.Code_OK} {
		r := h.receiveRequest("orders")
		r.InvisibleDuration = durationpb.New(d)
		st, _ := h.receive(h.as("c"), r)
		wantStatus(t, "invisible for "+d.String(), st, code, "")
	}
	h.sendOne(normal("orders", "02"))
	r := h.receiveRequest("orders")
	r.AutoRenew = true
	if _, messages := h.receive(h.as("c"), r); len(messages) != 1 || h.pops[len(h.pops)-1].InvisibleTime != 33*time.Second {
		t.Errorf("renewed by the server: %d messages, %+v", len(messages), h.pops[len(h.pops)-1])
	}
	change, err := h.client.ChangeInvisibleDuration(h.as("c"), &v2.ChangeInvisibleDurationRequest{Group: resource("g"), Topic: resource("orders"),
		ReceiptHandle: "0 1 2 3 0 broker-a 0 0 0", InvisibleDuration: durationpb.New(6 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "change to 6 s", change.GetStatus(), v2.Code_ILLEGAL_INVISIBLE_TIME, "5000")

	// A poll that leaves it to the server how long to wait takes the least where the deadline
	// leaves no more, and one without a deadline the most.
	ctx, cancel := context.WithTimeout(h.as("c"), 2500*time.Millisecond)
	defer cancel()
	st, _ := h.receive(ctx, r)
	wantStatus(t, "a short poll", st, v2.Code_MESSAGE_NOT_FOUND, "")
	if got := h.pops[len(h.pops)-1].PollTime; got < 900*time.Millisecond || got > time.Second {
		t.Errorf("a short poll waits for %v", got)
	}
}
