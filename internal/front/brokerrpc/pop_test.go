package brokerrpc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func popHeader(topic string) *remoting.PopMessageRequest {
	return &remoting.PopMessageRequest{ConsumerGroup: "g", Topic: topic, QueueID: -1, MaxMsgNums: 32, InvisibleTime: 60000,
		BornTime: time.Now().UnixMilli(), InitMode: 0}
}

// popped is one message of an answer with the receipt that a client makes for it.
type popped struct {
	*message.Message
	receipt receipt.Handle
	real    string // topic to acknowledge with
}

// pop pops and builds receipts as clients do: from the answer's header alone.
func (n *node) pop(h *remoting.PopMessageRequest) (list []popped, code int32) {
	n.t.Helper()
	r := n.call(remoting.ReqPopMessage, h, nil)
	var a remoting.PopMessageResponse
	if err := r.Decode(&a); err != nil {
		n.t.Fatal(err)
	}
	if r.Code != 0 {
		return nil, r.Code
	}
	starts, err := receipt.ParseStartOffsets(a.StartOffsetInfo)
	if err != nil {
		n.t.Fatal(err)
	}
	offsets, err := receipt.ParseOffsets(a.MsgOffsetInfo)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, m := range records(n.t, r.Body) {
		flag := byte(0)
		switch {
		case strings.HasPrefix(m.Topic, "%RETRY%") && strings.Contains(m.Topic, "+"):
			flag = receipt.FlagRetryV2
		case strings.HasPrefix(m.Topic, "%RETRY%"):
			flag = receipt.FlagRetryV1
		}
		key := receipt.Queue{RetryFlag: flag, QueueID: m.QueueID}
		found := false
		for _, off := range offsets[key] {
			found = found || off == m.QueueOffset
		}
		if !found {
			n.t.Fatalf("offset %d of %+v is not in msgOffsetInfo %q", m.QueueOffset, key, a.MsgOffsetInfo)
		}
		list = append(list, popped{m, receipt.Handle{StartOffset: starts[key], PopTime: a.PopTime, InvisibleTime: a.InvisibleTime, ReviveQueue: a.ReviveQid,
			RetryFlag: flag, Broker: n.Name, QueueID: m.QueueID, Offset: m.QueueOffset, LogOffset: -1}, receipt.RealTopic(flag, h.Topic, h.ConsumerGroup)})
	}
	return list, 0
}

func (n *node) ack(p popped) *remoting.Command {
	n.t.Helper()
	return n.call(remoting.ReqAckMessage, &remoting.AckMessageRequest{ConsumerGroup: "g", Topic: p.real, QueueID: p.QueueID, ExtraInfo: p.receipt.String(), Offset: p.QueueOffset}, nil)
}

func (n *node) change(p popped, invisible int64) *remoting.Command {
	n.t.Helper()
	return n.call(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{ConsumerGroup: "g", Topic: p.real, QueueID: p.QueueID,
		ExtraInfo: p.receipt.String(), Offset: p.QueueOffset, InvisibleTime: invisible}, nil)
}

func (n *node) sendMany(topic string, queue int32, bodies ...string) {
	n.t.Helper()
	before := n.Store.MaxOffset(topic, queue)
	for _, b := range bodies {
		n.send(topic, queue, b, "")
	}
	until(n.t, "dispatch", func() bool { return n.Store.MaxOffset(topic, queue) == before+int64(len(bodies)) })
}

func TestPopAckRetryDead(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	g := group.New("g")
	g.RetryMaxTimes = 1
	if err := n.Groups.Put(g); err != nil {
		t.Fatal(err)
	}
	n.sendMany("T", 0, "a", "b", "c")
	got, _ := n.pop(popHeader("T"))
	if len(got) != 3 || string(got[0].Body) != "a" {
		t.Fatalf("popped %d", len(got))
	}
	for range 2 { // twice the same is still OK: it is done
		if r := n.ack(got[0]); r.Code != 0 {
			t.Errorf("ack: %d %q", r.Code, r.Remark)
		}
	}
	if r := n.change(got[1], 1000); r.Code != 0 {
		t.Errorf("change: %d %q", r.Code, r.Remark)
	}
	if r := n.ack(got[1]); r.Code != remoting.ResNoMessage {
		t.Errorf("ack with the receipt from before the change: %d %q", r.Code, r.Remark) // traps 16
	}
	if _, code := n.pop(popHeader("T")); code != remoting.ResPollingTimeout {
		t.Errorf("all are in flight: %d", code)
	}
	n.Clock.Advance(time.Second)
	again := func(want string) popped {
		t.Helper()
		var got []popped
		until(t, "the retry", func() bool { got, _ = n.pop(popHeader("T")); return len(got) > 0 })
		if len(got) != 1 || string(got[0].Body) != want || got[0].ReconsumeTimes != 1 || got[0].receipt.RetryFlag != receipt.FlagRetryV1 {
			t.Fatalf("redelivered %+v", got)
		}
		return got[0]
	}
	b := again("b")
	if r := n.ack(b); r.Code != 0 {
		t.Errorf("ack of a retry: %d %q", r.Code, r.Remark)
	}
	n.Clock.Advance(time.Minute)
	again("c")
	n.Clock.Advance(2 * time.Minute) // its second and last delivery lapses, too
	until(t, "the dead letter", func() bool { return n.Store.MaxOffset("%DLQ%g", 0) == 1 })
	if r := n.ack(got[2]); r.Code != remoting.ResNoMessage {
		t.Errorf("ack after the time is over: %d %q", r.Code, r.Remark)
	}
}

func TestBatchAck(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.sendMany("T", 0, "a", "b", "c")
	got, _ := n.pop(popHeader("T"))
	ack := func(bits ...int64) *remoting.Command {
		a := remoting.BatchAck{ConsumerGroup: "g", Topic: "T", Retry: "0", StartOffset: got[0].receipt.StartOffset, PopTime: got[0].receipt.PopTime, InvisibleTime: 60000}
		for _, b := range bits {
			a.Set(b)
		}
		return n.call(remoting.ReqBatchAckMessage, nil, remoting.Marshal(&remoting.BatchAckBody{BrokerName: n.Name, Acks: []remoting.BatchAck{a}}))
	}
	if r := ack(0, 2); r.Code != 0 {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
	if r := ack(1, 7); r.Code != remoting.ResNoMessage || !strings.Contains(r.Remark, "1 messages are acknowledged") {
		t.Errorf("one that is not there: %d %q", r.Code, r.Remark)
	}
	if r := n.call(remoting.ReqBatchAckMessage, nil, []byte(`{"acks":[]}`)); r.Code != remoting.ResNoMessage {
		t.Errorf("empty: %d", r.Code)
	}
	if r := n.call(remoting.ReqBatchAckMessage, nil, []byte(`{"acks":[{"r":"9"}]}`)); r.Code != remoting.ResMessageIllegal {
		t.Errorf("retry flag 9: %d", r.Code)
	}
	n.Clock.Advance(time.Hour)
	if list, _ := n.pop(popHeader("T")); len(list) != 0 {
		t.Errorf("%d messages came back", len(list))
	}
}

func TestPopWaitsAndNotifies(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	n.pop(popHeader("T")) // the group begins
	for round := range 10 {
		h := popHeader("T")
		h.PollTime = 20000
		h.BornTime = 1 // traps 17: a client whose clock is behind waits like any other
		answer := make(chan []popped)
		go func() { list, _ := n.pop(h); answer <- list }()
		until(t, "the pop to wait", func() bool { return n.LongPoll.Waiting() == 1 })
		var info remoting.PollingInfoResponse
		n.ok(remoting.ReqPollingInfo, &remoting.PollingInfoRequest{ConsumerGroup: "g", Topic: "T", QueueID: -1}, nil, &info)
		if info.PollingNum != 1 {
			t.Errorf("polling number %d", info.PollingNum)
		}
		n.send("T", int32(round%2), fmt.Sprint(round), "")
		list := <-answer
		if len(list) != 1 || string(list[0].Body) != fmt.Sprint(round) {
			t.Fatalf("round %d: %v", round, list)
		}
		n.ack(list[0])
	}
	ask := &remoting.NotificationRequest{ConsumerGroup: "g", Topic: "T", QueueID: -1, PollTime: 20000, BornTime: time.Now().UnixMilli()}
	told := make(chan bool)
	go func() {
		var a remoting.NotificationResponse
		n.ok(remoting.ReqNotification, ask, nil, &a)
		told <- a.HAsMsg
	}()
	until(t, "the notification to wait", func() bool { return n.LongPoll.Waiting() == 1 })
	n.send("T", 0, "x", "")
	if !<-told {
		t.Error("told that there is nothing")
	}
	ask.PollTime, ask.Topic = 0, "T"
	if list, _ := n.pop(popHeader("T")); len(list) != 1 {
		t.Errorf("the notification took the message: %v", list)
	}
	var a remoting.NotificationResponse
	if n.ok(remoting.ReqNotification, ask, nil, &a); a.HAsMsg {
		t.Error("told of a message that is in flight")
	}
}

// TestPopRefusals goes through the observed answers of remoting.md.
func TestPopRefusals(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	n.sendMany("T", 0, "a")
	off := group.New("off")
	off.ConsumeEnable = false
	if err := n.Groups.Put(off); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		tune   func(h *remoting.PopMessageRequest)
		code   int32
		remark string
	}{
		{"too many", func(h *remoting.PopMessageRequest) { h.MaxMsgNums = 33 }, 29, "32"},
		{"queue beyond", func(h *remoting.PopMessageRequest) { h.QueueID = 9 }, 29, ""},
		{"unknown topic", func(h *remoting.PopMessageRequest) { h.Topic = "Nope" }, 17, "does not exist"},
		{"unknown kind of filter", func(h *remoting.PopMessageRequest) { h.ExpType, h.Exp = "XPATH", "x" }, 1, "XPATH"},
		{"group disabled", func(h *remoting.PopMessageRequest) { h.ConsumerGroup = "off" }, 16, "may not consume"},
		{"illegal group", func(h *remoting.PopMessageRequest) { h.ConsumerGroup = "a b" }, 29, "a b"},
	} {
		h := popHeader("T")
		c.tune(h)
		r := n.call(remoting.ReqPopMessage, h, nil)
		var a remoting.PopMessageResponse
		if err := r.Decode(&a); err != nil || r.Code != c.code || !strings.Contains(r.Remark, c.remark) || a != (remoting.PopMessageResponse{}) {
			t.Errorf("%s: %d %q %+v %v", c.name, r.Code, r.Remark, a, err)
		}
	}
	good := receipt.Handle{PopTime: 1, InvisibleTime: 60000, Broker: n.Name, LogOffset: -1}.String()
	for _, c := range []struct {
		name   string
		h      remoting.AckMessageRequest
		code   int32
		remark string
	}{
		{"unknown topic", remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "Nope", ExtraInfo: good}, 17, "Nope"},
		{"queue beyond", remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "T", QueueID: 9, ExtraInfo: good}, 13, "queue 9"},
		{"offset beyond", remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "T", Offset: 99, ExtraInfo: good}, 208, "offset is illegal, key:T@0, commit:99, store:0~1"},
		{"no receipt", remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "T", ExtraInfo: "nonsense"}, 13, ""},
		{"foreign receipt", remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "T", ExtraInfo: good}, 208, ""},
		{"lite", remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "T", ExtraInfo: good, LiteTopic: "l"}, 29, "lite"},
	} {
		if r := n.call(remoting.ReqAckMessage, &c.h, nil); r.Code != c.code || !strings.Contains(r.Remark, c.remark) {
			t.Errorf("ack, %s: %d %q", c.name, r.Code, r.Remark)
		}
		change := remoting.ChangeMessageInvisibleTimeRequest{ConsumerGroup: c.h.ConsumerGroup, Topic: c.h.Topic, QueueID: c.h.QueueID, Offset: c.h.Offset, ExtraInfo: c.h.ExtraInfo, LiteTopic: c.h.LiteTopic}
		if r := n.call(remoting.ReqChangeMessageInvisibleTime, &change, nil); r.Code != c.code || !strings.Contains(r.Remark, c.remark) {
			t.Errorf("change, %s: %d %q", c.name, r.Code, r.Remark)
		}
	}
}

// TestAcknowledgedStaysAcknowledged: what was answered with OK does not come back, and
// what was not does, after a stop and after a crash of the process.
func TestAcknowledgedStaysAcknowledged(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.sendMany("T", 0, "a", "b", "c", "d")
	h := popHeader("T")
	h.MaxMsgNums = 3
	got, _ := n.pop(h)
	n.ack(got[1])
	n.stop()
	n = startNode(t, fs)
	if r := n.ack(got[2]); r.Code != 0 {
		t.Errorf("a receipt from before the restart: %d %q", r.Code, r.Remark)
	}
	n2 := startNode(t, crash(fs))
	n2.Clock.Advance(2 * time.Minute)
	seen := map[string]int{}
	until(t, "what is left", func() bool {
		list, _ := n2.pop(popHeader("T"))
		for _, p := range list {
			seen[string(p.Body)]++
			n2.ack(p)
		}
		return len(seen) == 2
	})
	if seen["a"] != 1 || seen["d"] != 1 {
		t.Errorf("seen %v", seen)
	}
}

// TestInventedNamesAreNotRemembered: a pop's filter is its group's subscription, but not
// where there is no such topic or group.
func TestInventedNamesAreNotRemembered(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	ask := func(group, topic string, code int32) {
		t.Helper()
		h := popHeader(topic)
		h.ConsumerGroup, h.ExpType, h.Exp = group, "TAG", "a"
		if _, got := n.pop(h); got != code {
			t.Errorf("pop of %s by %s: %d, want %d", topic, group, got, code)
		}
	}
	ask("g", "T", remoting.ResPollingTimeout)
	if _, ok := n.Clients.Subscription("g", "T"); !ok {
		t.Error("the filter of a pop is not the group's subscription")
	}
	ask("g", "nowhere", remoting.ResTopicNotExist)
	ask("no group", "T", remoting.ResInvalidParameter)
	for _, q := range [][2]string{{"g", "nowhere"}, {"no group", "T"}} {
		if _, ok := n.Clients.Subscription(q[0], q[1]); ok {
			t.Errorf("the subscription of %s to %s is kept", q[0], q[1])
		}
	}
}
