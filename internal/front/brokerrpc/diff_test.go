package brokerrpc

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// The tests here hold the rows of docs/differences.md, "Sending and receiving over
// Remoting": each says what Apache RocketMQ 5.5.0 does and asserts what Bolide does.

func TestDiffRefusedSends(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	if err := n.Topics.Put(&topic.Config{Name: "RO", ReadQueues: 1, WriteQueues: 1, Perm: 4}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, topic, body, props string
		apache, bolide           int32
		remark                   string
	}{
		{"empty body", "T", "", "", 1, 13, "the body is empty"},
		{"separator in a value", "T", "x", "a\x01b\x01c\x02", 0, 13, `"a"`},
		{"pair without a name", "T", "x", "\x01b\x02", 0, 13, "no name"},
		{"delay that is no number", "T", "x", "DELAY\x01soon\x02", 1, 13, "soon"},
		{"topic without write permission", "RO", "x", "", 0, 16, "permission 4"},
		{"recall by property", "T", "x", "TIMER_DELAY_SEC\x0160\x02TIMER_DEL_UNIQKEY\x01K\x02", 0, 13, "RECALL_MESSAGE"},
		{"timer without a time", "rmq_sys_wheel_timer", "x", "", 0, 16, "forbidden"},
		{"lite topic of a topic that is not their parent", "T", "x", "__LITE_TOPIC\x01l\x02", 0, 13, "message.type LITE"},
	} {
		r := n.call(remoting.ReqSendMessageV2, sendHeader(c.topic, 0, c.props), []byte(c.body))
		if r.Code != c.bolide || r.Code == c.apache || !strings.Contains(r.Remark, c.remark) {
			t.Errorf("%s: %d %q, Apache answers %d", c.what, r.Code, r.Remark, c.apache)
		}
	}
}

// TestDiffDeadLettersStartAnew: Apache keeps the number of attempts.
func TestDiffDeadLettersStartAnew(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.sendMany("T", 0, "x")
	m := records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil, nil))[0]
	n.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Offset: m.PhysicalOffset, Group: "g", MaxReconsumeTimes: remoting.Some[int32](0)}, nil, nil)
	until(t, "the dead letter", func() bool { return n.Store.MaxOffset("%DLQ%g", 0) == 1 })
	dead := records(t, n.ok(remoting.ReqPullMessage, pullHeader("reader", "%DLQ%g", 0, 0), nil, nil))[0]
	if dead.ReconsumeTimes != 0 || dead.Properties.Value("__BOLIDE_DLQ_ATTEMPTS") != "1" || dead.Properties.Value("__BOLIDE_DLQ_REASON") != "attempts" ||
		dead.Properties.Value(message.PropertyRetryTopic) != "T" {
		t.Errorf("%+v", dead)
	}
}

// TestDiffNewGroupBeginsWhereItWasTold is R059: Apache answers 0 as long as the queue's
// first message is in memory, so a group that begins "from last" replays the queue.
func TestDiffNewGroupBeginsWhereItWasTold(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.sendMany("T", 0, "old")
	ask := &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T"}
	if r := n.call(remoting.ReqQueryConsumerOffset, ask, nil); r.Code != remoting.ResQueryNotFound {
		t.Errorf("%d", r.Code)
	}
}

// TestDiffAcknowledgementsAreHonest: Apache answers 0 to all of these.
func TestDiffAcknowledgementsAreHonest(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.sendMany("T", 0, "a", "b")
	got, _ := n.pop(popHeader("T"))
	n.change(got[0], 30000)
	if r := n.ack(got[0]); r.Code != remoting.ResNoMessage {
		t.Errorf("replaced receipt: %d", r.Code)
	}
	a := remoting.BatchAck{ConsumerGroup: "g", Topic: "T", Retry: "0", PopTime: got[1].receipt.PopTime, InvisibleTime: 60000}
	a.Set(0)
	a.Set(1)
	r := n.call(remoting.ReqBatchAckMessage, nil, remoting.Marshal(&remoting.BatchAckBody{Acks: []remoting.BatchAck{a}}))
	if r.Code != remoting.ResNoMessage || !strings.Contains(r.Remark, "1 messages") {
		t.Errorf("batch: %d %q", r.Code, r.Remark)
	}
}

// TestDiffClientClock: Apache answers 210 at once to a bornTime that is too old.
func TestDiffClientClock(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.sendMany("T", 0, "a")
	h := popHeader("T")
	h.BornTime = 1
	if got, code := n.pop(h); len(got) != 1 {
		t.Errorf("%d", code)
	}
}

// TestDiffRefusedCodesSayWhy: Apache's remark ends after "not supported".
func TestDiffRefusedCodesSayWhy(t *testing.T) {
	n := newNode(t)
	if r := n.call(remoting.ReqCheckRocksDBCQWriteProgress, nil, nil); r.Code != 3 || !strings.HasPrefix(r.Remark, " request type 354 not supported") || !strings.Contains(r.Remark, "RocksDB") {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
}

// TestDiffLargestBatch: Apache stores a batch of any number of messages.
func TestDiffLargestBatch(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	one, err := message.AppendBatch(nil, &message.Message{Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	h := sendHeader("T", 0, "")
	h.Batch = true
	if r := n.call(remoting.ReqSendBatchMessage, h, bytes.Repeat(one, maxBatch+1)); r.Code != remoting.ResMessageIllegal || !strings.Contains(r.Remark, "65536") {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
}

// TestDiffCrowdedHash: Apache answers with the newest messages whose keys have the hash of
// the key, whatever their keys; its clients keep those that have it, and find none behind
// them. Here the key itself is looked for, up to a limit; the limit is told.
func TestDiffCrowdedHash(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	const many = 3500
	key := func(i int) string { // Aa and BB have one hash in Java
		var k strings.Builder
		for bit := range 12 {
			k.WriteString([]string{"Aa", "BB"}[i>>bit&1])
		}
		return k.String()
	}
	for from := 0; from < many; from += 500 {
		var batch []byte
		for i := from; i < from+500; i++ {
			batch, _ = message.AppendBatch(batch, &message.Message{Body: []byte(key(i)), Properties: message.Properties("KEYS\x01" + key(i) + "\x02")})
		}
		h := sendHeader("T", 0, "")
		h.Batch = true
		n.ok(remoting.ReqSendBatchMessage, h, batch, nil)
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == many })
	ask := func(i int) *remoting.Command {
		return n.call(remoting.ReqQueryMessage, &remoting.QueryMessageRequest{Topic: "T", Key: key(i), MaxNum: 32, EndTimestamp: time.Now().Add(time.Hour).UnixMilli()}, nil)
	}
	for _, i := range []int{many - 1, many - 2000, many - 3000} {
		if got := records(t, ask(i).Body); len(got) != 1 || string(got[0].Body) != key(i) {
			t.Errorf("message %d: %d", i, len(got))
		}
	}
	if r := ask(0); r.Code != remoting.ResQueryNotFound || !strings.Contains(r.Remark, "newest 3000") || !strings.Contains(r.Remark, "narrower range of time") {
		t.Errorf("the oldest: %d %q", r.Code, r.Remark)
	}
}
