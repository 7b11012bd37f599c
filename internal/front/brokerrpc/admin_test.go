package brokerrpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// fill sends messages to queue 0 of a topic that is empty, and waits until readers see them.
func (n *node) fill(topic string, count int) {
	n.t.Helper()
	for i := range count {
		n.send(topic, 0, fmt.Sprint("m", i), "")
	}
	until(n.t, "dispatch", func() bool { return n.Store.MaxOffset(topic, 0)-n.Store.MinOffset(topic, 0) == int64(count) })
}

func (n *node) stats(group string) map[remoting.MessageQueue]remoting.OffsetWrapper {
	n.t.Helper()
	var s remoting.ConsumeStats
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsRequest{ConsumerGroup: group}, nil, nil), &s); err != nil {
		n.t.Fatal(err)
	}
	return s.OffsetTable
}

// R099, R100: a deleted topic is gone, on disk and after a restart, and one of the same
// name begins anew, for every group.
func TestDeletedTopicBeginsAnew(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.fill("T", 100)
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 100}, nil, nil)
	n.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: "T"}, nil, nil)
	gone := func(n *node) {
		t.Helper()
		if r := n.call(remoting.ReqGetTopicConfig, &remoting.GetTopicConfigRequest{Topic: "T"}, nil); r.Code != remoting.ResTopicNotExist {
			t.Errorf("the topic is there: %d", r.Code)
		}
		// A mere question does not bring it back.
		n.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T"}, nil)
		n.ok(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: "T"}, nil, nil)
		if len(n.stats("g")) != 0 {
			t.Errorf("offsets outlive the topic: %v", n.stats("g"))
		}
		for _, name := range n.Store.Topics() {
			if name == "T" {
				t.Error("its queues are on disk")
			}
		}
	}
	gone(n)
	killed := startNode(t, crash(fs))
	gone(killed)
	n.stop()
	n = startNode(t, fs)
	gone(n)
	n.topic("T", 1)
	n.fill("T", 10)
	begin := n.Store.MinOffset("T", 0)
	if got := records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, begin), nil, nil)); len(got) != 10 {
		t.Errorf("%d messages of the new topic", len(got))
	}
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: begin + 3}, nil, nil)
	for q, p := range n.stats("g") {
		if lag := p.BrokerOffset - p.ConsumerOffset; lag != 7 {
			t.Errorf("%v: lag %d", q, lag)
		}
	}
}

// R100: the same for a group.
func TestDeletedGroupBeginsAnew(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 5)
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 5}, nil, nil)
	n.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupRequest{GroupName: "g"}, nil, nil)
	if r := n.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T"}, nil); r.Code == 0 {
		var a remoting.QueryConsumerOffsetResponse
		if err := r.Decode(&a); err != nil || a.Offset != 0 {
			t.Errorf("offset %d, %v", a.Offset, err)
		}
	}
	if len(n.stats("g")) != 0 {
		t.Error("offsets outlive the group")
	}
	n.ok(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupRequest{GroupName: "never was"}, nil, nil)
}

// The groups that the servers and their tools use stay, whoever asks for their end.
func TestSystemGroupsStay(t *testing.T) {
	n := newNode(t)
	for _, name := range append(names.SystemGroups(), names.SystemGroupPrefix+"X") {
		_, before := n.Groups.Get(name)
		r := n.call(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupRequest{GroupName: name, CleanOffset: true}, nil)
		if r.Code != remoting.ResInvalidParameter || !strings.Contains(r.Remark, "system group: "+name) {
			t.Errorf("delete %s: %d %s", name, r.Code, r.Remark)
		}
		if _, after := n.Groups.Get(name); after != before {
			t.Errorf("%s was there: %t, is there: %t", name, before, after)
		}
	}
}

// A topic's name becomes the name of a folder that is removed: none that could lead
// anywhere else is taken.
func TestDeleteIllegalNames(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 10)
	for _, name := range []string{"..", "../commitlog", "./T", "x/../T", `..\commitlog`, "a b", strings.Repeat("x", 300)} {
		r := n.call(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: name}, nil)
		if r.Code != remoting.ResInvalidParameter || !strings.Contains(r.Remark, "topic") {
			t.Errorf("delete %q: %d %s", name, r.Code, r.Remark)
		}
	}
	if got := records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil, nil)); len(got) != 10 {
		t.Errorf("%d messages are left of 10", len(got))
	}
}

func TestDeleteRefusals(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		topic string
		code  int32
	}{{"", 29}, {" ", 29}, {"TBW102", 29}, {"DefaultCluster", 29}, {"never-was", 0}} {
		if r := n.call(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: c.topic}, nil); r.Code != c.code {
			t.Errorf("%q: %d %s", c.topic, r.Code, r.Remark)
		}
	}
}

func TestStatistics(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	n.fill("T", 3)
	var table remoting.TopicStatsTable
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoRequest{Topic: "T"}, nil, nil), &table); err != nil {
		t.Fatal(err)
	}
	full, empty := table.OffsetTable[remoting.MessageQueue{Topic: "T", BrokerName: n.Name}], table.OffsetTable[remoting.MessageQueue{Topic: "T", BrokerName: n.Name, QueueID: 1}]
	if len(table.OffsetTable) != 2 || full.MaxOffset != 3 || full.LastUpdateTimestamp == 0 || empty.MaxOffset != 0 || empty.LastUpdateTimestamp != 0 {
		t.Errorf("%+v", table)
	}
	if r := n.call(remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoRequest{Topic: "none"}, nil); r.Code != remoting.ResTopicNotExist {
		t.Errorf("unknown topic: %d", r.Code)
	}
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 2}, nil, nil)
	p := n.stats("g")[remoting.MessageQueue{Topic: "T", BrokerName: n.Name}]
	if p.BrokerOffset != 3 || p.ConsumerOffset != 2 || p.LastTimestamp == 0 {
		t.Errorf("%+v", p)
	}
	if got := string(n.ok(remoting.ReqQueryTopicConsumeByWho, &remoting.QueryTopicConsumeByWhoRequest{Topic: "T"}, nil, nil)); got != `{"groupList":["g"]}` {
		t.Error(got)
	}
	var info remoting.KVTable
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetBrokerRuntimeInfo, nil, nil, nil), &info); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"brokerVersionDesc", "putTps", "getTransferredTps", "sendThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills",
		"pageCacheLockTimeMills", "earliestMessageTimeStamp", "commitLogDiskRatio", "timerReadBehind", "msgPutTotalTodayMorning"} {
		if info.Table[key] == "" {
			t.Errorf("%s is missing", key)
		}
	}
	if info.Table["msgPutTotalTodayNow"] != "3" || info.Table["brokerActive"] != "true" || strings.HasPrefix(info.Table["earliestMessageTimeStamp"], "-") {
		t.Errorf("%v", info.Table)
	}
}

func TestResetByTimeAndOffset(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 5)
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 4}, nil, nil)
	for _, c := range []struct {
		name string
		h    remoting.InvokeBrokerToResetOffsetRequest
		code int32
		want int64
	}{
		{name: "to the beginning", h: remoting.InvokeBrokerToResetOffsetRequest{Timestamp: 1, IsForce: true}, want: 0},
		{name: "to the end", h: remoting.InvokeBrokerToResetOffsetRequest{Timestamp: -1, IsForce: true}, want: 5},
		{name: "to an offset", h: remoting.InvokeBrokerToResetOffsetRequest{QueueID: remoting.Some(int32(0)), Offset: remoting.Some(int64(2)), Timestamp: -1}, want: 2},
		{name: "beyond the end", h: remoting.InvokeBrokerToResetOffsetRequest{QueueID: remoting.Some(int32(0)), Offset: remoting.Some(int64(99)), Timestamp: -1}, code: 1},
		{name: "a queue that is not there", h: remoting.InvokeBrokerToResetOffsetRequest{QueueID: remoting.Some(int32(9)), Timestamp: -1}, code: 1},
	} {
		c.h.Group, c.h.Topic = "g", "T"
		r := n.call(remoting.ReqInvokeBrokerToResetOffset, &c.h, nil)
		if r.Code != c.code {
			t.Errorf("%s: %d %s", c.name, r.Code, r.Remark)
			continue
		}
		if c.code != 0 {
			continue
		}
		var body remoting.ResetOffsetBody
		if err := remoting.Unmarshal(r.Body, &body); err != nil || body.OffsetTable[remoting.MessageQueue{Topic: "T", BrokerName: n.Name}] != c.want {
			t.Errorf("%s: %v, %v", c.name, body, err)
		}
		if off, _ := n.Offsets.Query("g", "T", 0); off != c.want {
			t.Errorf("%s: offset %d", c.name, off)
		}
	}
	if r := n.call(remoting.ReqInvokeBrokerToResetOffset, &remoting.InvokeBrokerToResetOffsetRequest{Group: "none", Topic: "T", Timestamp: -1}, nil); r.Code != remoting.ResSubscriptionGroupNotExist {
		t.Errorf("unknown group: %d", r.Code)
	}
}

func TestAssignmentAndMode(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 4)
	ask := func() string {
		return string(n.ok(remoting.ReqQueryAssignment, nil, remoting.Marshal(&remoting.QueryAssignmentRequestBody{Topic: "T", ConsumerGroup: "g",
			ClientID: "c1", StrategyName: "AVG", MessageModel: remoting.Clustering}), nil))
	}
	if got := ask(); got != "{}" {
		t.Errorf("a client that nobody knows: %s", got)
	}
	n.ok(remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: "c1", ConsumerDataSet: []remoting.ConsumerData{{GroupName: "g",
		ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromFirstOffset,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "T", SubString: "*", ExpressionType: "TAG"}}}}}), nil)
	if got := ask(); strings.Count(got, `"mode":"PULL"`) != 4 {
		t.Errorf("pull: %s", got)
	}
	set := func(topic, group string) int32 {
		return n.call(remoting.ReqSetMessageRequestMode, nil, remoting.Marshal(&remoting.SetMessageRequestModeBody{Topic: topic, ConsumerGroup: group, Mode: remoting.ModePop})).Code
	}
	for _, c := range []struct {
		topic, group string
		code         int32
	}{{"%RETRY%g", "g", 16}, {"none", "g", 17}, {"T", "none", 26}, {"T", "g", 0}} {
		if got := set(c.topic, c.group); got != c.code {
			t.Errorf("mode of %s %s: %d", c.topic, c.group, got)
		}
	}
	if got, want := ask(), `{"messageQueueAssignments":[{"messageQueue":{"brokerName":"`+n.Name+`","queueId":-1,"topic":"T"},"mode":"POP"}]}`; got != want {
		t.Errorf("pop: %s", got)
	}
	n.stop()
	n = startNode(t, fs)
	if got, want := string(n.ok(remoting.ReqGetAllMessageRequestMode, nil, nil, nil)), `{"messageRequestModeMap":{"T":{"g":{"consumerGroup":"g","mode":"POP","popShareQueueNum":0,"topic":"T"}}}}`; got != want {
		t.Errorf("after a restart: %s", got)
	}
}
