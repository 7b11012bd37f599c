package brokerrpc

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func (n *node) recall(topic, handle string) (int32, string) {
	n.t.Helper()
	r := n.call(remoting.ReqRecallMessage, &remoting.RecallMessageRequest{ProducerGroup: "p", Topic: topic, RecallHandle: handle}, nil)
	id, _ := r.Ext.Get("msgId")
	if r.Code != 0 {
		return r.Code, r.Remark
	}
	return 0, id
}

// TestRecall is R081: what is taken back in time is not delivered, and each other answer says
// what it is.
func TestRecall(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.topic("U", 1)
	send := func(key string) string {
		return n.send("T", 0, key, "UNIQ_KEY\x01"+key+"\x02TIMER_DELAY_SEC\x0160\x02").RecallHandle
	}
	kept, back, undone := send("kept"), send("back"), send("a key with blanks")
	if now := n.send("T", 0, "now", "UNIQ_KEY\x01now\x02").RecallHandle; now != "" {
		t.Errorf("a message that is delivered at once can be recalled with %s", now)
	}
	for range 2 { // the second one says the same
		if code, id := n.recall("T", back); code != 0 || id != "back" {
			t.Errorf("recall: %d %s", code, id)
		}
	}
	n.stop()
	n = startNode(t, n.fs)
	if code, id := n.recall("T", undone); code != 0 || id != "a key with blanks" {
		t.Errorf("recall after a restart: %d %s", code, id)
	}
	if code, id := n.recall("T", back); code != 0 || id != "back" {
		t.Errorf("a second recall after a restart: %d %s", code, id)
	}
	n.Clock.Advance(2 * time.Minute)
	until(t, "the message that was kept", func() bool { return n.Store.MaxOffset("T", 0) == 2 })
	h, err := message.ParseRecallHandle(kept)
	if err != nil {
		t.Fatal(err)
	}
	forged := h
	forged.UniqKey = "never sent"
	foreign := h
	foreign.Broker = "another"
	moved := h
	moved.Due += 1000
	raw := func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }
	for name, c := range map[string]struct {
		topic, handle string
		code          int32
		remark        string
	}{
		"delivered":          {"T", kept, 604, "too late to recall: the message was for " + time.UnixMilli(h.Due).UTC().Format("2006-01-02")},
		"forged key":         {"T", forged.String(), 604, `nothing to recall: no message "never sent"`},
		"forged time":        {"T", moved.String(), 604, "nothing to recall"},
		"of another broker":  {"T", foreign.String(), 604, `of broker "another"`},
		"of another topic":   {"U", kept, 604, `of topic "T"`},
		"cut":                {"T", kept[:len(kept)/2], 604, "illegal recall handle"},
		"no Base64":          {"T", "*", 604, "Base64"},
		"another version":    {"T", raw("v2 T b 1 k"), 604, "v1"},
		"time is no number":  {"T", raw("v1 T b soon k"), 604, `"soon"`},
		"topic is not there": {"Nope", kept, 17, "Nope"},
		"no handle":          {"T", "", 604, "illegal recall handle"},
	} {
		if code, remark := n.recall(c.topic, c.handle); code != c.code || !strings.Contains(remark, c.remark) {
			t.Errorf("%s: %d %q, want %d %q", name, code, remark, c.code, c.remark)
		}
	}
}

// TestRecallRightAfterTheSend: the handle is good as soon as it is there.
func TestRecallRightAfterTheSend(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	for i := range 200 {
		key := "k" + strconv.Itoa(i)
		handle := n.send("T", 0, "x", "UNIQ_KEY\x01"+key+"\x02TIMER_DELAY_MS\x01"+strconv.Itoa(60_000+i)+"\x02").RecallHandle
		if code, id := n.recall("T", handle); code != 0 || id != key {
			t.Fatalf("%d: %d %s", i, code, id)
		}
	}
	n.Clock.Advance(time.Hour)
	until(t, "the end of all that was taken back", func() bool { return len(n.Wheel.Counts()) == 0 })
	if got := n.Store.MaxOffset("T", 0); got != 0 {
		t.Errorf("%d messages", got)
	}
}

// TestRecallTakesARepeatedSendBack: the client has sent the same message three times, as it
// does when answers are lost, and one of them was moved since.
func TestRecallTakesARepeatedSendBack(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	properties := "UNIQ_KEY\x01key\x02TIMER_DELIVER_MS\x01" + strconv.FormatInt(n.Clock.NowMilli()+3_600_000, 10) + "\x02"
	n.send("T", 0, "x", properties)
	n.send("T", 0, "x", properties)
	if err := n.Wheel.Move(t.Context(), n.Store.LogEnd()); err != nil {
		t.Fatal(err)
	}
	handle := n.send("T", 0, "x", properties).RecallHandle
	for range 2 {
		if code, id := n.recall("T", handle); code != 0 || id != "key" {
			t.Errorf("recall: %d %s", code, id)
		}
	}
	until(t, "the end of all that was taken back", func() bool { return len(n.Wheel.Counts()) == 0 })
	n.Clock.Advance(2 * time.Hour)
	if got := n.Store.MaxOffset("T", 0); got != 0 {
		t.Errorf("%d messages", got)
	}
}

// TestTimersAreListed: counts by topic, and the next ones, the earliest first.
func TestTimersAreListed(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.topic("U", 1)
	for i, topic := range []string{"T", "U", "T", "T"} {
		n.send(topic, 0, "x", "UNIQ_KEY\x01k"+strconv.Itoa(i)+"\x02TIMER_DELAY_SEC\x01"+strconv.Itoa(100-i)+"\x02")
	}
	until(t, "all timers to be indexed", func() bool { return n.Wheel.Counts()["T"] == 3 && n.Wheel.Counts()["U"] == 1 })
	ask := func(topic string, limit int32) string {
		var timers remoting.Timers
		if err := remoting.Unmarshal(n.ok(remoting.ReqBolideGetTimers, &remoting.GetTimersRequest{Topic: topic, Limit: limit}, nil, nil), &timers); err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, of := range timers.Topics {
			text = append(text, of.Topic+"="+strconv.FormatInt(of.Count, 10))
		}
		for i, of := range timers.Next {
			text = append(text, of.Topic+" "+of.MsgID)
			if i > 0 && of.Due < timers.Next[i-1].Due {
				t.Errorf("not in order: %+v", timers.Next)
			}
		}
		return strings.Join(text, ", ")
	}
	for _, stored := range []bool{false, true} {
		if stored { // the index is in the database now
			n.stop()
			n = startNode(t, n.fs)
		}
		if got := ask("", 3); got != "T=3, U=1, T k3, T k2, U k1" {
			t.Errorf("stored %v: %s", stored, got)
		}
		if got := ask("T", 10); got != "T=3, T k3, T k2, T k0" {
			t.Errorf("stored %v: %s", stored, got)
		}
	}
	n.Clock.Advance(time.Hour)
	if got := ask("", 10); got != "" {
		t.Errorf("%s", got)
	}
}

// What waits and how far it is, for servers and tools of Apache RocketMQ.
func TestTimerState(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.topic("U", 1)
	began := n.Clock.NowMilli()
	for i, topic := range []string{"T", "T", "U"} {
		n.send(topic, 0, "x", "TIMER_DELAY_SEC\x01"+strconv.Itoa(60+10*i)+"\x02")
	}
	n.Clock.Advance(61 * time.Second) // the first
	until(t, "the first to leave", func() bool { return n.Wheel.Counts()["T"] == 1 })
	check := n.ok(remoting.ReqGetTimerCheckPoint, nil, nil, nil)
	if len(check) != 56 {
		t.Fatalf("a checkpoint of %d bytes", len(check))
	}
	field := func(i int) int64 { return int64(binary.BigEndian.Uint64(check[8*i:])) }
	if at := field(0); at%1000 != 0 || at < began+60_000 || at > n.Clock.NowMilli() {
		t.Errorf("next second %d, began at %d", at, began)
	}
	if field(2) != 3 || field(3) != 3 {
		t.Errorf("queue offsets %d and %d of a queue of 3", field(2), field(3))
	}
	var counts remoting.TimerCounts
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetTimerMetrics, nil, nil, nil), &counts); err != nil {
		t.Fatal(err)
	}
	for topic, c := range counts.TimingCount {
		if c.Count != 1 || c.TimeStamp < began || c.TimeStamp > n.Clock.NowMilli() {
			t.Errorf("%s: %+v", topic, c)
		}
	}
	if len(counts.TimingCount) != 2 || counts.DataVersion.Counter != 4 {
		t.Errorf("%+v", counts)
	}
	settings := *n.StoreConfig.Get()
	settings.TimerWheelEnable = false
	n.StoreConfig.Replace(settings)
	for _, code := range []int32{remoting.ReqGetTimerCheckPoint, remoting.ReqGetTimerMetrics} {
		if r := n.call(code, nil, nil); r.Code != remoting.ResSystemError || !strings.Contains(r.Remark, "timerWheelEnable") {
			t.Errorf("%s without timers: %d %s", remoting.CodeName(code), r.Code, r.Remark)
		}
	}
}
