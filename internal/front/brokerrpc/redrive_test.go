package brokerrpc

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// bury sends a message and gives it back as a dead letter of the group.
func (n *node) bury(topic, group, body string) {
	n.t.Helper()
	end := n.Store.MaxOffset(topic, 0)
	n.send(topic, 0, body, "KEYS\x01k-"+body+"\x02")
	until(n.t, "dispatch", func() bool { return n.Store.MaxOffset(topic, 0) == end+1 })
	m := records(n.t, n.ok(remoting.ReqPullMessage, pullHeader("sender", topic, 0, end), nil, nil))[0]
	dead := n.Store.MaxOffset("%DLQ%"+group, 0)
	n.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Offset: m.PhysicalOffset, Group: group, DelayLevel: -1}, nil, nil)
	until(n.t, "the dead letter", func() bool { return n.Store.MaxOffset("%DLQ%"+group, 0) == dead+1 })
}

func (n *node) redrive(group string, offset int64, toTopic, ask bool) (remoting.RedriveDeadLetterResponse, *remoting.Command) {
	n.t.Helper()
	r := n.call(remoting.ReqBolideRedriveDeadLetter, &remoting.RedriveDeadLetterRequest{Group: group, Offset: offset, ToTopic: toTopic, Ask: ask}, nil)
	var h remoting.RedriveDeadLetterResponse
	if r.Code == 0 {
		if err := r.Decode(&h); err != nil {
			n.t.Fatal(err)
		}
	}
	return h, r
}

// TestRedriveOnce is R126: a dead letter goes back to its group's retry topic, without the
// attempts of its first life and with its origin, once, whoever asks how often and whatever
// crashes in between.
func TestRedriveOnce(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	for i := range 4 {
		n.bury("T", "g", fmt.Sprint("m", i))
	}
	retried := func() int64 { return n.Store.MaxOffset("%RETRY%g", 0) }
	if h, r := n.redrive("g", 1, false, true); r.Code != 0 || h.Before || retried() != 0 {
		t.Errorf("a question: %+v, %d %s", h, r.Code, r.Remark)
	}
	h, r := n.redrive("g", 1, false, false)
	if r.Code != 0 || h.Before || h.Topic != "%RETRY%g" {
		t.Fatalf("%+v, %d %s", h, r.Code, r.Remark)
	}
	until(t, "the copy", func() bool { return retried() == 1 })
	m := records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "%RETRY%g", 0, 0), nil, nil))[0]
	if string(m.Body) != "m1" || m.ReconsumeTimes != 0 || m.Properties.Value(message.PropertyRetryTopic) != "T" || m.Properties.Value("KEYS") != "k-m1" ||
		m.Properties.Has("__BOLIDE_DLQ_REASON") || m.Properties.Value(message.PropertyOriginMessageID) == "" {
		t.Errorf("%+v", m)
	}
	var wg sync.WaitGroup
	for range 8 { // several at once, all of the queue
		wg.Go(func() {
			for off := range int64(4) {
				if _, r := n.redrive("g", off, false, false); r.Code != 0 && r.Code != remoting.ResSystemBusy {
					t.Errorf("%d %s", r.Code, r.Remark)
				}
			}
		})
	}
	wg.Wait()
	until(t, "the copies", func() bool { return retried() >= 4 })
	copies := crash(fs)
	n.stop()
	for _, fs := range []*vfs.MemFS{fs, copies} { // after a stop in order, and as kill -9 leaves it
		n = startNode(t, fs)
		for off := range int64(4) {
			if h, r := n.redrive("g", off, false, false); r.Code != 0 || !h.Before {
				t.Errorf("after a restart: %+v, %d %s", h, r.Code, r.Remark)
			}
		}
		if got := retried(); got != 4 {
			t.Errorf("%d copies of 4", got)
		}
		n.stop()
	}
}

func TestRedriveRefusals(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	if err := n.Topics.Put(&topic.Config{Name: "F", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "FIFO"}}); err != nil {
		t.Fatal(err)
	}
	n.bury("T", "g", "x")
	n.bury("F", "f", "y")
	n.send("%DLQ%g", 0, "z", "") // not a dead letter of a topic
	for _, c := range []struct {
		what, group string
		offset      int64
		code        int32
		remark      string
	}{
		{"no such group", "nobody", 0, 1, "%DLQ%nobody"},
		{"no such offset", "g", 99, 1, "dead letter 99"},
		{"below zero", "g", -1, 1, "dead letter -1"},
		{"of a FIFO topic", "f", 0, remoting.ResIllegalOperation, "FIFO"},
		{"without origin", "g", 1, remoting.ResIllegalOperation, "which topic"},
	} {
		if _, r := n.redrive(c.group, c.offset, false, false); r.Code != c.code || !strings.Contains(r.Remark, c.remark) {
			t.Errorf("%s: %d %s", c.what, r.Code, r.Remark)
		}
	}
	if h, r := n.redrive("f", 0, true, false); r.Code != 0 || h.Topic != "F" {
		t.Errorf("to the topic: %+v, %d %s", h, r.Code, r.Remark)
	}
	until(t, "the copy", func() bool { return n.Store.MaxOffset("F", 0) == 2 })
	n.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: "T"}, nil, nil)
	if _, r := n.redrive("g", 0, false, false); r.Code != remoting.ResTopicNotExist {
		t.Errorf("its topic is gone: %d %s", r.Code, r.Remark)
	}
	// What was refused can be redriven when the reason is gone.
	n.topic("T", 1)
	if h, r := n.redrive("g", 0, false, false); r.Code != 0 || h.Before {
		t.Errorf("its topic is back: %+v, %d %s", h, r.Code, r.Remark)
	}
	// A new dead-letter topic of the same name begins anew.
	n.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: "%DLQ%f"}, nil, nil)
	n.bury("F", "f", "z")
	if h, r := n.redrive("f", 0, true, false); r.Code != 0 || h.Before {
		t.Errorf("anew: %+v, %d %s", h, r.Code, r.Remark)
	}
}

// TestRedrivePopped: a dead letter of a group that pops goes to the retry topic that POP
// reads.
func TestRedrivePopped(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 1)
	pop := func() []*message.Message {
		return records(t, n.call(remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: "g", Topic: "T", QueueID: -1, MaxMsgNums: 1, InvisibleTime: 60000}, nil).Body)
	}
	if got := pop(); len(got) != 1 {
		t.Fatal("nothing popped")
	}
	cfg, _ := n.Groups.Get("g")
	last := cfg.Clone()
	last.RetryMaxTimes, last.Attributes = 0, nil
	if err := n.Groups.Put(last); err != nil {
		t.Fatal(err)
	}
	n.Clock.Advance(61 * time.Second)
	until(t, "the dead letter", func() bool { return n.Store.MaxOffset("%DLQ%g", 0) == 1 })
	if h, r := n.redrive("g", 0, false, false); r.Code != 0 || h.Topic != "%RETRY%g_T" {
		t.Fatalf("%+v, %d %s", h, r.Code, r.Remark)
	}
	var got []*message.Message
	until(t, "it is popped again", func() bool { got = append(got, pop()...); return len(got) == 1 })
	if string(got[0].Body) != "m0" || got[0].ReconsumeTimes != 0 {
		t.Errorf("%+v", got[0])
	}
}
