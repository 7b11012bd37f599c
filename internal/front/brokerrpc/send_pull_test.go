package brokerrpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func TestSendAndPull(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	const p = "UNIQ_KEY\x01K1\x02TAGS\x01a\x02user\x01ü x\x02"
	a := n.send("T", 1, "hello", p)
	if a.QueueID != 1 || a.QueueOffset != 0 || a.TransactionID != "K1" || a.MsgID != message.OffsetID(n.StoreHost, 0) || a.Region != "DefaultRegion" || a.TraceOn != "true" {
		t.Errorf("answer %+v", a)
	}
	n.ok(remoting.ReqSendMessage, &remoting.SendMessageRequest{ProducerGroup: "p", Topic: "T", DefaultTopic: "TBW102", QueueID: 1, Flag: 9}, []byte("old form"), nil)
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 1) == 2 })
	var h remoting.PullMessageResponse
	r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 1, 0), nil)
	if err := r.Decode(&h); err != nil {
		t.Fatal(err)
	}
	got := records(t, r.Body)
	if r.Code != 0 || r.Remark != "FOUND" || h.NextBeginOffset != 2 || h.MaxOffset != 2 || h.MinOffset != 0 || len(got) != 2 {
		t.Fatalf("pull: %d %s %+v %d", r.Code, r.Remark, h, len(got))
	}
	m := got[0]
	if string(m.Body) != "hello" || m.Topic != "T" || m.QueueID != 1 || string(m.Properties) != p+"CLUSTER\x01DefaultCluster\x02MSG_REGION\x01DefaultRegion\x02" || m.BornTimestamp != 1700000000000 {
		t.Errorf("first: %+v", m)
	}
	if got[1].Flag != 9 || got[1].UniqueID() == "" || got[1].QueueOffset != 1 {
		t.Errorf("second: %+v", got[1])
	}
}

func TestBatchOfMessages(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	var body []byte
	for i := range 3 {
		var err error
		body, err = message.AppendBatch(body, &message.Message{Body: fmt.Appendf(nil, "m%d", i), Properties: message.Properties(fmt.Sprintf("UNIQ_KEY\x01K%d\x02", i))})
		if err != nil {
			t.Fatal(err)
		}
	}
	h := sendHeader("T", 0, "")
	h.Batch = true
	var a remoting.SendMessageResponse
	n.ok(remoting.ReqSendBatchMessage, h, body, &a)
	if strings.Count(a.MsgID, ",") != 2 || a.QueueOffset != 0 {
		t.Errorf("answer %+v", a)
	}
	n.ok(remoting.ReqSendMessageV2, h, body, &a) // the flag alone says it is a batch
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 6 })
	for i, m := range records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil, nil)) {
		if string(m.Body) != fmt.Sprintf("m%d", i%3) || m.UniqueID() != fmt.Sprintf("K%d", i%3) {
			t.Errorf("message %d: %+v", i, m)
		}
	}
	if r := n.call(remoting.ReqSendBatchMessage, h, body[:len(body)-1]); r.Code != remoting.ResMessageIllegal {
		t.Errorf("torn batch: %d %s", r.Code, r.Remark)
	}
}

// TestSendRefusals goes through the observed answers of remoting.md.
func TestSendRefusals(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	for _, c := range []struct {
		name, topic, props string
		queue              int32
		body               string
		defaultTopic       string
		code               int32
		remark             string
	}{
		{name: "queue beyond", topic: "T", queue: 9, code: 29, remark: "queue 9"},
		{name: "name", topic: "a b", code: 29, remark: "a b"},
		{name: "schedule topic", topic: "SCHEDULE_TOPIC_XXXX", code: 16, remark: "forbidden"},
		{name: "default topic missing", topic: "New", defaultTopic: "Missing", code: 17, remark: "New"},
		{name: "empty body", topic: "T", body: "-", code: 13, remark: "body is empty"},
		{name: "R106 body over the limit", topic: "T", body: strings.Repeat("x", 32<<10+1), code: 13, remark: "limit is 32768"},
		{name: "properties over the limit", topic: "T", props: "a\x01" + strings.Repeat("x", 33000) + "\x02", code: 13, remark: "32767"},
		{name: "R105 separator in a value", topic: "T", props: "a\x01b\x01c\x02", code: 13, remark: `"a"`},
		{name: "delivery time beyond the limit", topic: "T", props: "TIMER_DELAY_SEC\x01300000\x02", code: 13, remark: "TIMER_DELAY_SEC = 300000 is 300000 s (83h20m0s) ahead, the limit timerMaxDelaySec is 259200 s (3 days)"},
		{name: "delivery time that is no number", topic: "T", props: "TIMER_DELIVER_MS\x01soon\x02", code: 13, remark: `TIMER_DELIVER_MS is "soon"`},
		{name: "retry topic of an illegal group", topic: "%RETRY%" + strings.Repeat("g", 121), code: 26, remark: "120"},
	} {
		h := sendHeader(c.topic, c.queue, c.props)
		if c.defaultTopic != "" {
			h.DefaultTopic = c.defaultTopic
		}
		body := []byte("x")
		switch c.body {
		case "":
		case "-":
			body = nil
		default:
			body = []byte(c.body)
		}
		r := n.call(remoting.ReqSendMessageV2, h, body)
		region, _ := r.Ext.Get("MSG_REGION")
		trace, _ := r.Ext.Get("TRACE_ON")
		if r.Code != c.code || !strings.Contains(r.Remark, c.remark) || region != "DefaultRegion" || trace != "true" {
			t.Errorf("%s: %d %q, region %q, trace %q", c.name, r.Code, r.Remark, region, trace)
		}
	}
	if a := n.send("%RETRY%newgroup", -1, "x", ""); a.QueueID != 0 {
		t.Errorf("send to the retry topic of a group that may be created: %+v", a)
	}
	if a := n.send("T", 0, "x", "DELAY\x0199\x02"); a.QueueID != 0 {
		t.Errorf("delay level over the highest: %+v", a)
	}
	if a := n.send("Created", 3, "x", ""); a.QueueID != 3 {
		t.Errorf("%+v", a)
	}
}
