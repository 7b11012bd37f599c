package brokerrpc

import (
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestChecksOfPop: what is wrong with a request has its code, the first in the protocol's
// order counts, and pop, peek, notification and polling info agree.
func TestChecksOfPop(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	if err := n.Topics.Put(&topic.Config{Name: "W", ReadQueues: 1, WriteQueues: 1, Perm: 2}); err != nil {
		t.Fatal(err)
	}
	off := group.New("off")
	off.ConsumeEnable = false
	if err := n.Groups.Put(off); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, group, topic string
		queue, max         int32
		exp                string
		code               int32
		popOnly            bool
	}{
		{what: "too many", group: "g", topic: "none", max: 33, code: remoting.ResInvalidParameter, popOnly: true},
		{what: "no topic", group: "off", topic: "none", exp: "||", code: remoting.ResTopicNotExist},
		{what: "topic that may not be read", group: "off", topic: "W", queue: 7, code: remoting.ResNoPermission},
		{what: "queue that is not there", group: "off", topic: "T", queue: 2, code: remoting.ResInvalidParameter},
		{what: "group that may not consume", group: "off", topic: "T", queue: -1, code: remoting.ResNoPermission},
		{what: "expression", group: "g", topic: "T", queue: -1, exp: "||", code: remoting.ResSubscriptionParseFailed, popOnly: true},
		{what: "nothing is wrong", group: "g", topic: "T", queue: -5, code: remoting.ResPollingTimeout, popOnly: true},
	} {
		h := popHeader(c.topic)
		h.ConsumerGroup, h.QueueID, h.Exp = c.group, c.queue, c.exp
		if c.max != 0 {
			h.MaxMsgNums = c.max
		}
		if r := n.call(remoting.ReqPopMessage, h, nil); r.Code != c.code {
			t.Errorf("pop, %s: %d %q, want %d", c.what, r.Code, r.Remark, c.code)
		}
		if c.popOnly {
			continue
		}
		for code, h := range map[int32]remoting.Header{
			remoting.ReqPeekMessage:  &remoting.PeekMessageRequest{ConsumerGroup: c.group, Topic: c.topic, QueueID: c.queue, MaxMsgNums: 1},
			remoting.ReqNotification: &remoting.NotificationRequest{ConsumerGroup: c.group, Topic: c.topic, QueueID: c.queue},
			remoting.ReqPollingInfo:  &remoting.PollingInfoRequest{ConsumerGroup: c.group, Topic: c.topic, QueueID: c.queue},
		} {
			if r := n.call(code, h, nil); r.Code != c.code {
				t.Errorf("%s, %s: %d %q, want %d", remoting.CodeName(code), c.what, r.Code, r.Remark, c.code)
			}
		}
	}
	if err := n.Config.Change(map[string]string{"brokerPermission": "2"}); err != nil {
		t.Fatal(err)
	}
	h := popHeader("none")
	h.MaxMsgNums = 33
	if r := n.call(remoting.ReqPopMessage, h, nil); r.Code != remoting.ResNoPermission {
		t.Errorf("broker that may not be read: %d %q", r.Code, r.Remark)
	}
}

func TestPeek(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	h := &remoting.PeekMessageRequest{ConsumerGroup: "g", Topic: "T", QueueID: -1, MaxMsgNums: 3}
	if r := n.call(remoting.ReqPeekMessage, h, nil); r.Code != remoting.ResPullNotFound {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
	n.sendMany("T", 0, "a", "b")
	n.sendMany("T", 1, "c", "d")
	for range 2 { // the second time finds the same
		var a remoting.PopMessageResponse
		body := n.ok(remoting.ReqPeekMessage, h, nil, &a)
		if got := records(t, body); len(got) != 3 || a.RestNum != 1 || a.MsgOffsetInfo != "" {
			t.Errorf("%d messages, %+v", len(got), a)
		}
	}
}

// TestDiffThrottledPop: Apache answers like a queue with no message, after the polling
// time. R016.
func TestDiffThrottledPop(t *testing.T) {
	n := startNode(t, vfs.NewMem(), func(b *config.Broker, _ *config.Store) {
		b.EnablePopMessageThreshold, b.PopInflightMessageThreshold = true, 2
	})
	n.topic("T", 1)
	n.sendMany("T", 0, "a", "b", "c")
	if got, _ := n.pop(popHeader("T")); len(got) != 2 {
		t.Fatalf("%d messages", len(got))
	}
	r := n.call(remoting.ReqPopMessage, popHeader("T"), nil)
	if r.Code != remoting.ResPollingFull || !strings.Contains(r.Remark, "popInflightMessageThreshold") {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
}
