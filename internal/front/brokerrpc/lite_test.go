package brokerrpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// parent makes a topic with lite topics and a group that is bound to it.
func (n *node) parent(name, bound string) {
	n.t.Helper()
	if err := n.Topics.Put(&topic.Config{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "LITE", "+lite.topic.expiration": "60"}}); err != nil {
		n.t.Fatal(err)
	}
	g := group.New(bound)
	g.Attributes = map[string]string{"+lite.bind.topic": name}
	if err := n.Groups.Put(g); err != nil {
		n.t.Fatal(err)
	}
}

func subscribe(action, client string, lites ...string) []byte {
	return remoting.Marshal(&remoting.LiteSubscriptions{Set: []remoting.LiteSubscription{{Action: action, ClientID: client, Group: "g", Topic: "P", LiteTopicSet: lites}}})
}

// A proxy of Apache RocketMQ's asks for lite topics by Remoting: it subscribes for its
// clients, pops, acknowledges and changes; and mqadmin looks at all of it.
func TestLiteTopicsOverRemoting(t *testing.T) {
	n := newNode(t)
	n.parent("P", "g")
	for i := range 3 {
		n.send("P", 0, fmt.Sprint("a", i), "__LITE_TOPIC\x01a\x02")
	}
	n.send("P", 0, "b0", "__LITE_TOPIC\x01b\x02")
	until(t, "dispatch", func() bool { return n.Store.LogMax() == n.Store.LogEnd() })
	n.ok(remoting.ReqLiteSubscriptionCtl, nil, subscribe("PARTIAL_ADD", "c", "a", "b"), nil)

	var a remoting.PopLiteMessageResponse
	pop := &remoting.PopLiteMessageRequest{ClientID: "c", ConsumerGroup: "g", Topic: "P", MaxMsgNum: 2, InvisibleTime: 60_000}
	got := records(t, n.ok(remoting.ReqPopLiteMessage, pop, nil, &a))
	if len(got) != 2 || string(got[0].Body) != "a0" || string(got[1].Body) != "a1" || a.OrderCountInfo != "0;0" || a.ReviveQid != 999 {
		t.Fatalf("popped %d, %+v", len(got), a)
	}
	handle := func(offset int64) string {
		return receipt.Handle{StartOffset: offset, PopTime: a.PopTime, InvisibleTime: a.InvisibleTime, ReviveQueue: a.ReviveQid, Broker: n.Name, Offset: offset, LogOffset: -1}.String()
	}
	ack := func(offset int64) *remoting.AckMessageRequest {
		return &remoting.AckMessageRequest{ConsumerGroup: "g", Topic: "P", QueueID: 0, Offset: offset, ExtraInfo: handle(offset), LiteTopic: "a"}
	}
	n.ok(remoting.ReqAckMessage, ack(0), nil, nil)
	var changed remoting.ChangeMessageInvisibleTimeResponse
	n.ok(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{ConsumerGroup: "g", Topic: "P", QueueID: 0, Offset: 1,
		ExtraInfo: handle(1), InvisibleTime: 30_000, LiteTopic: "a"}, nil, &changed)
	if changed.InvisibleTime != 30_000 {
		t.Errorf("changed to %+v", changed)
	}
	if r := n.call(remoting.ReqAckMessage, ack(1), nil); r.Code != remoting.ResNoMessage {
		t.Errorf("ack under the old name: %d %s", r.Code, r.Remark)
	}
	if got := records(t, n.ok(remoting.ReqPopLiteMessage, pop, nil, nil)); len(got) != 1 || string(got[0].Body) != "b0" {
		t.Errorf("behind what is in flight: %v", got)
	}

	var broker remoting.BrokerLiteInfo
	if n.body(remoting.ReqGetBrokerLiteInfo, nil, &broker); broker.CurrentLmqNum != 2 || broker.OrderInfoCount != 2 || broker.LiteSubscriptionCount != 2 || broker.TopicMeta["P"] != 60 || len(broker.GroupMeta["P"]) != 1 {
		t.Errorf("%+v", broker)
	}
	var parent remoting.ParentTopicInfo
	if n.body(remoting.ReqGetParentTopicInfo, &remoting.GetParentTopicInfoRequest{Topic: "P"}, &parent); parent.LiteTopicCount != 2 || parent.TTL != 60 || len(parent.Groups) != 1 {
		t.Errorf("%+v", parent)
	}
	var info remoting.LiteTopicInfo
	if n.body(remoting.ReqGetLiteTopicInfo, &remoting.GetLiteTopicInfoRequest{ParentTopic: "P", LiteTopic: "a"}, &info); info.TopicOffset.MaxOffset != 3 ||
		len(info.Subscriber) != 1 || info.Subscriber[0].ClientID != "c" || !info.ShardingToBroker {
		t.Errorf("%+v", info)
	}
	var client remoting.LiteClientInfo
	if n.body(remoting.ReqGetLiteClientInfo, &remoting.GetLiteClientInfoRequest{ParentTopic: "P", Group: "g", ClientID: "c", MaxCount: 1}, &client); client.LiteTopicCount != 2 || len(client.LiteTopicSet) != 1 {
		t.Errorf("%+v", client)
	}
	until(t, "the group's offsets", func() bool {
		a, _ := n.Offsets.Query("g", "%LMQ%$P$a", 0)
		_, b := n.Offsets.Query("g", "%LMQ%$P$b", 0)
		return a == 1 && b
	})
	var lag remoting.LiteGroupInfo
	if n.body(remoting.ReqGetLiteGroupInfo, &remoting.GetLiteGroupInfoRequest{Group: "g", TopK: 1}, &lag); lag.TotalLagCount != 3 || len(lag.LagCountTopK) != 1 || lag.LagCountTopK[0].LiteTopic != "a" {
		t.Errorf("%+v", lag)
	}
	if n.body(remoting.ReqGetLiteGroupInfo, &remoting.GetLiteGroupInfoRequest{Group: "g", LiteTopic: "a"}, &lag); lag.TotalLagCount != 2 || lag.Offset == nil || lag.Offset.BrokerOffset != 3 {
		t.Errorf("%+v", lag)
	}
	n.ok(remoting.ReqTriggerLiteDispatch, &remoting.TriggerLiteDispatchRequest{Group: "g"}, nil, nil)
	// mqadmin's reset, and what an ordinary pull sees.
	if got := records(t, n.ok(remoting.ReqPullMessage, func() *remoting.PullMessageRequest {
		h := pullHeader("reader", "P", 0, 0)
		h.LiteTopic = "a"
		return h
	}(), nil, nil)); len(got) != 3 {
		t.Errorf("pulled %d", len(got))
	}
}

// Bad input gets the protocol's own code and a sentence that says what is wrong.
func TestLiteTopicsRefuse(t *testing.T) {
	n := newNode(t)
	n.parent("P", "g")
	n.topic("T", 1)
	n.ok(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"plain","consumeEnable":true}`), nil)
	set := func(s remoting.LiteSubscription) []byte {
		return remoting.Marshal(&remoting.LiteSubscriptions{Set: []remoting.LiteSubscription{s}})
	}
	for _, c := range []struct {
		what string
		code int32
		h    remoting.Header
		body []byte
		want int32
		says string
	}{
		{"no body", remoting.ReqLiteSubscriptionCtl, nil, nil, 604, "no lite subscription"},
		{"unknown action", remoting.ReqLiteSubscriptionCtl, nil, subscribe("ADD", "c", "a"), 604, "ADD"},
		{"blank client", remoting.ReqLiteSubscriptionCtl, nil, subscribe("PARTIAL_ADD", "", "a"), 604, "client id"},
		{"negative tail", remoting.ReqLiteSubscriptionCtl, nil, set(remoting.LiteSubscription{Action: "PARTIAL_ADD", ClientID: "c", Group: "g", Topic: "P",
			LiteTopicSet: []string{"a"}, OffsetOption: remoting.LiteOffset{Type: "TAIL_N", Value: -2}}), 604, "negative"},
		{"bad lite topic", remoting.ReqLiteSubscriptionCtl, nil, subscribe("PARTIAL_ADD", "c", "a/b"), 604, "a/b"},
		{"unbound group", remoting.ReqLiteSubscriptionCtl, nil, set(remoting.LiteSubscription{Action: "PARTIAL_ADD", ClientID: "c", Group: "plain", Topic: "P"}), 29, "lite.bind.topic"},
		{"parent of another type", remoting.ReqLiteSubscriptionCtl, nil, set(remoting.LiteSubscription{Action: "PARTIAL_ADD", ClientID: "c", Group: "g", Topic: "T"}), 29, "NORMAL"},
		{"unknown group", remoting.ReqLiteSubscriptionCtl, nil, set(remoting.LiteSubscription{Action: "PARTIAL_ADD", ClientID: "c", Group: "none", Topic: "P"}), 26, "none"},
		{"pop of another type", remoting.ReqPopLiteMessage, &remoting.PopLiteMessageRequest{ClientID: "c", ConsumerGroup: "g", Topic: "T"}, nil, 29, "NORMAL"},
		{"pop of too many", remoting.ReqPopLiteMessage, &remoting.PopLiteMessageRequest{ClientID: "c", ConsumerGroup: "g", Topic: "P", MaxMsgNum: 33}, nil, 29, "32"},
		{"parent info of another type", remoting.ReqGetParentTopicInfo, &remoting.GetParentTopicInfoRequest{Topic: "T"}, nil, 29, "NORMAL"},
		{"parent info of nothing", remoting.ReqGetParentTopicInfo, &remoting.GetParentTopicInfoRequest{Topic: "none"}, nil, 17, "none"},
		{"lags of a plain group", remoting.ReqGetLiteGroupInfo, &remoting.GetLiteGroupInfoRequest{Group: "plain"}, nil, 29, "lite.bind.topic"},
		{"trigger for nobody", remoting.ReqTriggerLiteDispatch, &remoting.TriggerLiteDispatchRequest{Group: "none"}, nil, 26, "none"},
		{"commit in an invented lite topic", remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "%LMQ%$P$none", CommitOffset: 1}, nil, 17, "none"},
		{"send to the queue itself", remoting.ReqSendMessageV2, sendHeader("%LMQ%$P$a", 0, ""), []byte("x"), 29, "parent"},
	} {
		if r := n.call(c.code, c.h, c.body); r.Code != c.want || !strings.Contains(r.Remark, c.says) {
			t.Errorf("%s: %d %q, want %d", c.what, r.Code, r.Remark, c.want)
		}
	}
}
