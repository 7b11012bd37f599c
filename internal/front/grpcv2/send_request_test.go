package grpcv2

import (
	"bytes"
	"slices"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func fullRequest() *v2.SendMessageRequest {
	return &v2.SendMessageRequest{Messages: []*v2.Message{{
		Topic:          &v2.Resource{ResourceNamespace: "space", Name: "orders"},
		UserProperties: map[string]string{"color": "grün", "empty": ""},
		SystemProperties: &v2.SystemProperties{
			Tag: proto.String("a"), Keys: []string{"k1", "k2"}, MessageId: "01AB", BodyEncoding: v2.Encoding_GZIP,
			BodyDigest:  &v2.Digest{Type: v2.DigestType_CRC32, Checksum: "12345678"},
			MessageType: v2.MessageType_FIFO, BornTimestamp: timestamppb.New(time.UnixMilli(1_700_000_000_001)), BornHost: "host-1",
			DeliveryTimestamp: timestamppb.New(time.UnixMilli(-1)), QueueId: 3, MessageGroup: proto.String("g"),
			TraceContext: proto.String("t"), OrphanedTransactionRecoveryDuration: durationpb.New(90 * time.Second),
			LiteTopic: proto.String("lite"), Priority: proto.Int32(7), DeliveryAttempt: proto.Int32(2),
		},
		Body: []byte("body"),
	}, {Topic: &v2.Resource{Name: "orders"}, SystemProperties: &v2.SystemProperties{}, Body: []byte{0}}}}
}

// same compares what read made of a request with what the protobuf library makes.
func same(t *testing.T, wire []byte) {
	t.Helper()
	var want v2.SendMessageRequest
	wantErr := proto.Unmarshal(wire, &want)
	c := newSendCall()
	defer c.release()
	buf := append([]byte(nil), wire...)
	err := c.read(buf)
	if (err == nil) != (wantErr == nil) {
		// Fields that the server does not read are not looked into.
		if wantErr != nil && err == nil {
			return
		}
		t.Fatalf("read: %v, protobuf: %v", err, wantErr)
	}
	if err != nil {
		return
	}
	if c.tooMany && len(want.Messages) > len(c.messages) {
		return // refused, the rest is not read
	}
	if len(c.messages) != len(want.Messages) {
		t.Fatalf("%d messages, want %d", len(c.messages), len(want.Messages))
	}
	for i := range c.messages {
		got, m := &c.messages[i], want.Messages[i]
		sys := m.GetSystemProperties()
		if got.topic != m.GetTopic().GetName() || got.namespace != m.GetTopic().GetResourceNamespace() || string(got.body) != string(m.GetBody()) {
			t.Fatalf("topic %q %q, body %q; want %v", got.namespace, got.topic, got.body, m)
		}
		if len(got.properties) <= maxProperties {
			if len(got.properties) != len(m.UserProperties) {
				t.Fatalf("properties %v, want %v", got.properties, m.UserProperties)
			}
			for _, p := range got.properties {
				if v, is := m.UserProperties[p.name]; !is || v != p.value {
					t.Fatalf("property %q = %q, want %q", p.name, p.value, v)
				}
			}
		} else if len(m.UserProperties) <= maxProperties {
			t.Skip("more than the most, counting repeats: refused either way")
		}
		if got.tag != sys.GetTag() || got.id != sys.GetMessageId() || got.encoding != sys.GetBodyEncoding() || got.kind != sys.GetMessageType() ||
			got.bornHost != sys.GetBornHost() || got.group != sys.GetMessageGroup() || got.traceContext != sys.GetTraceContext() ||
			got.liteTopic != sys.GetLiteTopic() || got.priority != sys.GetPriority() || got.attempt != sys.GetDeliveryAttempt() {
			t.Fatalf("got %+v, want %v", got, sys)
		}
		if got.hasBorn != (sys.GetBornTimestamp() != nil) || got.born.seconds != sys.GetBornTimestamp().GetSeconds() || got.born.nanos != sys.GetBornTimestamp().GetNanos() {
			t.Fatalf("born %+v, want %v", got.born, sys.GetBornTimestamp())
		}
		if got.hasDeliver != (sys.GetDeliveryTimestamp() != nil) || got.deliver.seconds != sys.GetDeliveryTimestamp().GetSeconds() || got.deliver.nanos != sys.GetDeliveryTimestamp().GetNanos() {
			t.Fatalf("deliver %+v, want %v", got.deliver, sys.GetDeliveryTimestamp())
		}
		if got.hasRecoverAfter != (sys.GetOrphanedTransactionRecoveryDuration() != nil) || got.recoverAfter != sys.GetOrphanedTransactionRecoveryDuration().GetSeconds() {
			t.Fatalf("recover after %d, want %v", got.recoverAfter, sys.GetOrphanedTransactionRecoveryDuration())
		}
		if len(got.keys) > maxKeys && len(sys.GetKeys()) > maxKeys {
			continue // refused, the rest is not kept
		}
		if len(got.keys) != len(sys.GetKeys()) {
			t.Fatalf("keys %q, want %q", got.keys, sys.GetKeys())
		}
		for k := range got.keys {
			if got.keys[k] != sys.GetKeys()[k] {
				t.Fatalf("keys %q, want %q", got.keys, sys.GetKeys())
			}
		}
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSendRequestReadsAsProtobuf(t *testing.T) {
	wire := marshal(t, fullRequest())
	same(t, wire)
	for cut := range wire {
		same(t, wire[:cut])
	}
	// Parts of one message, one after the other, are merged; a later value replaces an
	// earlier one.
	a := marshal(t, &v2.Message{Topic: resource("x"), UserProperties: map[string]string{"k": "1"}, SystemProperties: &v2.SystemProperties{MessageId: "1", Keys: []string{"a"}}})
	b := marshal(t, &v2.Message{Topic: &v2.Resource{ResourceNamespace: "n"}, UserProperties: map[string]string{"k": "2"}, SystemProperties: &v2.SystemProperties{MessageId: "2", Keys: []string{"b"}}})
	both := append(a, b...)
	same(t, append([]byte{1<<3 | 2, byte(len(both))}, both...))
}

// TestRequestsOfMillionsOfNothing sends what is two bytes an element on the wire: it must not
// become hundreds of bytes each in memory.
func TestRequestsOfMillionsOfNothing(t *testing.T) {
	const many = 1 << 20
	field := func(num int, b []byte) []byte {
		return append(protowire.AppendVarint([]byte{byte(num<<3 | 2)}, uint64(len(b))), b...)
	}
	message := func(system, properties []byte) []byte {
		return field(1, slices.Concat(field(1, field(2, []byte("t"))), properties, field(3, system), field(4, []byte("x"))))
	}
	keys := bytes.Repeat([]byte{2<<3 | 2, 0}, many)
	properties := field(2, field(1, []byte("k")))
	for i := range 200 {
		properties = append(properties, field(2, field(1, []byte{'a', byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)}))...)
	}
	h := newHarness(t)
	ctx := h.as("c")
	for _, c := range []struct {
		name string
		wire []byte
		code v2.Code
	}{
		{"messages", bytes.Repeat([]byte{1<<3 | 2, 0}, many), v2.Code_BAD_REQUEST},
		{"keys", message(keys, nil), v2.Code_MESSAGE_PROPERTIES_TOO_LARGE},
		{"keys of many messages", bytes.Repeat(message(keys[:2*maxKeys], nil), 64), v2.Code_BAD_REQUEST},
		{"properties", message(nil, bytes.Repeat(properties, 1000)), v2.Code_MESSAGE_PROPERTIES_TOO_LARGE},
	} {
		call := &sendCall{}
		if err := call.read(c.wire); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		kept := cap(call.messages)
		for i := range call.messages {
			kept += cap(call.messages[i].keys) + cap(call.messages[i].properties)
		}
		if kept > 4*maxElements/3 {
			t.Errorf("%s: %d elements are kept", c.name, kept)
		}
		var answer v2.SendMessageResponse
		h.raw(ctx, v2.MessagingService_SendMessage_FullMethodName, c.wire, &answer)
		if st := answer.GetStatus(); st.GetCode() != c.code {
			t.Errorf("%s: %v, want %s", c.name, st, c.code)
		}
	}
	ack := &ackCall{}
	acks := slices.Concat(field(1, field(2, []byte("g"))), field(2, field(2, []byte("t"))), bytes.Repeat([]byte{3<<3 | 2, 0}, many))
	if err := ack.read(acks); err != nil {
		t.Fatal(err)
	}
	if len(ack.entries) > maxEntries {
		t.Errorf("%d entries are kept", len(ack.entries))
	}
	var answer v2.AckMessageResponse
	h.raw(ctx, v2.MessagingService_AckMessage_FullMethodName, acks, &answer)
	if st := answer.GetStatus(); st.GetCode() != v2.Code_BAD_REQUEST {
		t.Errorf("acks: %v", st)
	}
	err := h.conn.Invoke(ctx, v2.MessagingService_QueryRoute_FullMethodName, make([]byte, maxPlain+1), new([]byte), grpc.ForceCodec(rawCodec{}))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a route request of 4 MiB is read: %v", err)
	}
}

func FuzzSendRequest(f *testing.F) {
	wire, err := proto.Marshal(fullRequest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	f.Add([]byte{0x0a, 0x02, 0x22, 0x00})
	f.Fuzz(func(t *testing.T, wire []byte) { same(t, wire) })
}
