package grpcv2

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func decodeFrame(t *testing.T, wire []byte) *v2.ReceiveMessageResponse {
	t.Helper()
	var resp v2.ReceiveMessageResponse
	if err := proto.Unmarshal(wire, &resp); err != nil {
		t.Fatal(err)
	}
	return &resp
}

func properties(kv ...string) message.Properties {
	var b []byte
	for i := 0; i < len(kv); i += 2 {
		b = message.AppendProperty(b, kv[i], kv[i+1])
	}
	return message.Properties(b)
}

func deliver(t *testing.T, m *message.Message, digest digestKind, change func(*proxy.Popped)) *v2.Message {
	t.Helper()
	rec, err := message.AppendStored(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy.Popped{Broker: "broker-a", PopTime: 1_795_964_634_327, InvisibleTime: 30_000, ReviveQueue: 1,
		Batches: []proxy.PopBatch{{QueueID: 3, Records: []storage.Record{{QueueOffset: 9, PhysicalOffset: 960_667_478, Bytes: rec}}}}}
	if change != nil {
		change(p)
	}
	e := deliveryEncoder{topic: &v2.Resource{Name: "orders", ResourceNamespace: "space"}, digest: digest, popped: p}
	if err := e.set(&p.Batches[0], 0); err != nil {
		t.Fatal(err)
	}
	return decodeFrame(t, e.append(nil)).GetMessage()
}

func TestDeliveredMessage(t *testing.T) {
	host := netip.MustParseAddrPort("10.1.2.3:10911")
	body := []byte(strings.Repeat("x", 3000))
	m := &message.Message{Topic: "orders", QueueID: 3, QueueOffset: 9, PhysicalOffset: 960_667_478, SysFlag: message.SysCompressed,
		BornTimestamp: 1_700_000_000_001, StoreTimestamp: 1_700_000_000_999, BornHost: netip.MustParseAddrPort("10.9.9.9:5"), StoreHost: host,
		ReconsumeTimes: 2, Body: body, Properties: properties("TAGS", "a", "KEYS", "k1 k2", "UNIQ_KEY", "01AB", "__BORNHOST", "host-1",
			"color", "grün", "__SHARDINGKEY", "g", "TRACE_CONTEXT", "t", "RECONSUME_TIME", "0", "PGROUP", "orders", "CLUSTER", "c",
			"_SYS_MSG_PRIORITY_", "7", "DLQ_ORIGIN_TOPIC", "first", "DLQ_ORIGIN_MESSAGE_ID", "01CD", "BORN_TIMESTAMP", "1700000000001", "__BOLIDE_SRC", "pop:1")}
	sum := md5.Sum(body)
	want := &v2.Message{
		Topic:          &v2.Resource{Name: "orders", ResourceNamespace: "space"},
		UserProperties: map[string]string{"color": "grün", "__SHARDINGKEY": "g", "TRACE_CONTEXT": "t"},
		SystemProperties: &v2.SystemProperties{
			Tag: proto.String("a"), Keys: []string{"k1", "k2"}, MessageId: "01AB",
			BodyDigest:   &v2.Digest{Type: v2.DigestType_MD5, Checksum: strings.ToUpper(hex.EncodeToString(sum[:]))},
			BodyEncoding: v2.Encoding_GZIP, MessageType: v2.MessageType_FIFO,
			BornTimestamp: timestamppb.New(time.UnixMilli(1_700_000_000_001)), BornHost: "host-1",
			StoreTimestamp: timestamppb.New(time.UnixMilli(1_700_000_000_999)), StoreHost: "10.1.2.3:10911",
			ReceiptHandle: proto.String("0 1795964634327 30000 1 0 broker-a 3 9 960667478"), QueueId: 3, QueueOffset: proto.Int64(9),
			DeliveryAttempt: proto.Int32(3), MessageGroup: proto.String("g"), TraceContext: proto.String("t"), Priority: proto.Int32(7),
			DeadLetterQueue: &v2.DeadLetterQueue{Topic: "first", MessageId: "01CD"},
		},
		Body: body,
	}
	if got := deliver(t, m, digestMD5, nil); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestDeliveredKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		p    message.Properties
		want v2.MessageType
	}{
		{"nothing", properties("A", "b"), v2.MessageType_NORMAL},
		{"half", properties("TRAN_MSG", "true", "TIMER_DELIVER_MS", "1"), v2.MessageType_TRANSACTION},
		{"not half", properties("TRAN_MSG", "false"), v2.MessageType_NORMAL},
		{"level", properties("DELAY", "3", "__SHARDINGKEY", "g"), v2.MessageType_DELAY},
		{"time", properties("TIMER_DELIVER_MS", "1700000000000"), v2.MessageType_DELAY},
		{"seconds", properties("TIMER_DELAY_SEC", "5"), v2.MessageType_DELAY},
		{"group", properties("__SHARDINGKEY", "g", "_SYS_MSG_PRIORITY_", "1"), v2.MessageType_FIFO},
		{"priority", properties("_SYS_MSG_PRIORITY_", "1", "__LITE_TOPIC", "l"), v2.MessageType_PRIORITY},
		{"lite", properties("__LITE_TOPIC", "l"), v2.MessageType_LITE},
	} {
		m := deliver(t, &message.Message{Topic: "orders", Properties: c.p, Body: []byte("b")}, digestMD5, nil)
		if got := m.GetSystemProperties().GetMessageType(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDeliveredWithoutUniqueKey(t *testing.T) {
	host := netip.MustParseAddrPort("10.1.2.3:10911")
	m := &message.Message{Topic: "orders", PhysicalOffset: 77, StoreHost: host, BornHost: netip.MustParseAddrPort("10.9.9.9:5"), Body: []byte("b")}
	sys := deliver(t, m, digestMD5, nil).GetSystemProperties()
	if want := message.OffsetID(host, 77); sys.GetMessageId() != want {
		t.Errorf("id %s, want %s", sys.GetMessageId(), want)
	}
	if sys.GetBornHost() != "10.9.9.9" {
		t.Errorf("born host %s", sys.GetBornHost())
	}
	if sys.GetDeliveryAttempt() != 1 {
		t.Errorf("attempt %d, want 1", sys.GetDeliveryAttempt())
	}
}

func TestAttemptsOfOrderedBatches(t *testing.T) {
	m := &message.Message{Topic: "orders", Body: []byte("b")}
	got := deliver(t, m, digestMD5, func(p *proxy.Popped) { p.Batches[0].Attempts = []int32{4} })
	if got.GetSystemProperties().GetDeliveryAttempt() != 5 {
		t.Errorf("attempt %d, want 5", got.GetSystemProperties().GetDeliveryAttempt())
	}
}

// TestDigest holds that a digest is right for every client that gets it: CRC32 only for
// the two languages that read it, and only where they agree with all others on its form.
func TestDigest(t *testing.T) {
	for language, want := range map[string]digestKind{"GO": digestCRC, "JAVA": digestCRC, "PYTHON": digestMD5, "PHP": digestMD5, "": digestMD5} {
		if got := digestFor(language); got != want {
			t.Errorf("%s: %d, want %d", language, got, want)
		}
	}
	crc, md := 0, 0
	for i := range 200 {
		body := []byte(strconv.Itoa(i))
		d := deliver(t, &message.Message{Topic: "orders", Body: body}, digestCRC, nil).GetSystemProperties().GetBodyDigest()
		sum := md5.Sum(body)
		switch d.GetType() {
		case v2.DigestType_CRC32:
			crc++
			sum := crc32.ChecksumIEEE(body)
			if short, long := fmt.Sprintf("%X", sum), fmt.Sprintf("%08X", sum); d.GetChecksum() != short || short != long {
				t.Errorf("%s: CRC %s, want %s as well as %s", body, d.GetChecksum(), short, long)
			}
		case v2.DigestType_MD5:
			md++
			if want := strings.ToUpper(hex.EncodeToString(sum[:])); d.GetChecksum() != want {
				t.Errorf("%s: MD5 %s, want %s", body, d.GetChecksum(), want)
			}
		default:
			t.Errorf("%s: digest %v", body, d)
		}
	}
	if crc < 150 || md == 0 {
		t.Errorf("%d CRC and %d MD5 digests", crc, md)
	}
}

func TestFrames(t *testing.T) {
	f := appendStatusField(nil, responseStatus, v2.Code_MESSAGE_NOT_FOUND, "no new message")
	if st := decodeFrame(t, f).GetStatus(); st.GetCode() != v2.Code_MESSAGE_NOT_FOUND || st.GetMessage() != "no new message" {
		t.Error(st)
	}
	for _, ms := range []int64{0, 1, 999, 1_700_000_000_123, -1, -1000} {
		if got := decodeFrame(t, appendTime(nil, responseTimestamp, ms)).GetDeliveryTimestamp().AsTime().UnixMilli(); got != ms {
			t.Errorf("%d read as %d", ms, got)
		}
	}
}

// A record that can't be decoded must not take the others with it.
func TestBrokenRecordIsAnError(t *testing.T) {
	p := &proxy.Popped{Batches: []proxy.PopBatch{{Records: []storage.Record{{Bytes: []byte{1, 2, 3}}}}}}
	e := deliveryEncoder{topic: resource("orders"), popped: p}
	if err := e.set(&p.Batches[0], 0); err == nil {
		t.Error("no error")
	}
}
