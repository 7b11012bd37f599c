package brokerrpc

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// consumer connects a member of a group that answers an administrator's questions.
func (n *node) consumer(id, group string, topics ...string) *transport.Conn {
	n.t.Helper()
	conn := n.connect(func(r *transport.Request) {
		switch r.Code {
		case remoting.ReqGetConsumerRunningInfo:
			var h remoting.GetConsumerRunningInfoRequest
			if err := r.Decode(&h); err != nil {
				n.t.Error(err)
			}
			info := remoting.ConsumerRunningInfo{Properties: map[string]string{"who": h.ClientID}}
			if h.JstackEnable {
				info.Jstack = "stacks"
			}
			r.Responder().Reply(0, "", nil, remoting.Marshal(&info))
		case remoting.ReqConsumeMessageDirectly:
			var h remoting.ConsumeMessageDirectlyRequest
			if err := r.Decode(&h); err != nil {
				n.t.Error(err)
			}
			m := records(n.t, r.Body)[0]
			r.Responder().Reply(0, "", nil, remoting.Marshal(&remoting.ConsumeMessageDirectlyResult{ConsumeResult: "CR_SUCCESS",
				Remark: h.BrokerName + " " + string(m.Body)}))
		case remoting.ReqGetConsumerStatusFromClient:
			r.Responder().Reply(0, "", nil, remoting.Marshal(&remoting.ConsumerStatusBody{
				MessageQueueTable: map[remoting.MessageQueue]int64{{Topic: "T", BrokerName: n.Name}: 7}}))
		default: // one-way notices
		}
	})
	if r := callOn(n.t, conn, remoting.ReqHeartBeat, nil, heartbeat(id, group, topics...)); r.Code != 0 {
		n.t.Fatal(r.Remark)
	}
	return conn
}

func TestAdministratorAsksConsumers(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.consumer("c1", "g", "T")
	n.consumer("c2", "g", "T")
	sent := n.send("T", 0, "to be verified", "")

	var info remoting.ConsumerRunningInfo
	body := n.ok(remoting.ReqGetConsumerRunningInfo, &remoting.GetConsumerRunningInfoRequest{ConsumerGroup: "g", ClientID: "c2", JstackEnable: true}, nil, nil)
	if err := remoting.Unmarshal(body, &info); err != nil || info.Properties["who"] != "c2" || info.Jstack != "stacks" {
		t.Errorf("running info %s, %v", body, err)
	}
	var result remoting.ConsumeMessageDirectlyResult
	body = n.ok(remoting.ReqConsumeMessageDirectly, &remoting.ConsumeMessageDirectlyRequest{ConsumerGroup: "g", ClientID: "c1", MsgID: sent.MsgID}, nil, nil)
	if err := remoting.Unmarshal(body, &result); err != nil || result.ConsumeResult != "CR_SUCCESS" || result.Remark != n.Name+" to be verified" {
		t.Errorf("consumed directly: %s, %v", body, err)
	}
	var status remoting.ConsumerStatusBody
	for _, c := range []struct {
		client string
		want   int
	}{{"", 2}, {"c1", 1}, {"nobody", 0}} {
		status = remoting.ConsumerStatusBody{}
		body = n.ok(remoting.ReqInvokeBrokerToGetConsumerStatus, &remoting.InvokeBrokerToGetConsumerStatusRequest{Topic: "T", Group: "g", ClientAddr: c.client}, nil, nil)
		if err := remoting.Unmarshal(body, &status); err != nil || len(status.ConsumerTable) != c.want {
			t.Errorf("status of %q: %s, %v", c.client, body, err)
		}
	}
	for _, c := range []struct {
		what   string
		code   int32
		h      remoting.Header
		want   int32
		remark string
	}{
		{"unknown client", remoting.ReqGetConsumerRunningInfo, &remoting.GetConsumerRunningInfoRequest{ConsumerGroup: "g", ClientID: "no"}, 1, "<g> <no> is not online"},
		{"unknown group", remoting.ReqInvokeBrokerToGetConsumerStatus, &remoting.InvokeBrokerToGetConsumerStatusRequest{Topic: "T", Group: "no"}, 1, "not online"},
		{"malformed message id", remoting.ReqConsumeMessageDirectly, &remoting.ConsumeMessageDirectlyRequest{ConsumerGroup: "g", ClientID: "c1", MsgID: "xyz"}, 1, "xyz"},
		{"message that is not there", remoting.ReqConsumeMessageDirectly, &remoting.ConsumeMessageDirectlyRequest{ConsumerGroup: "g", ClientID: "c1",
			MsgID: sent.MsgID[:16] + "0000000000ffffff"}, 1, "message"},
	} {
		if r := n.call(c.code, c.h, nil); r.Code != c.want || !strings.Contains(r.Remark, c.remark) {
			t.Errorf("%s: %d %q", c.what, r.Code, r.Remark)
		}
	}
}

// TestResetReachesWaitingConsumers: a pull that waits for messages learns of a reset at
// once, and the reset is taken once.
func TestResetReachesWaitingConsumers(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 3)
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 3}, nil, nil)
	h := pullHeader("g", "T", 0, 3)
	h.SysFlag |= remoting.PullSuspend
	h.SuspendTimeoutMillis = 30000
	answer := make(chan *remoting.Command)
	go func() { answer <- n.call(remoting.ReqPullMessage, h, nil) }()
	until(t, "the pull to wait", func() bool { return n.LongPoll.Waiting() == 1 })
	n.ok(remoting.ReqInvokeBrokerToResetOffset, &remoting.InvokeBrokerToResetOffsetRequest{Group: "g", Topic: "T", Timestamp: 1, IsForce: true}, nil, nil)
	r := <-answer
	var a remoting.PullMessageResponse
	if err := r.Decode(&a); err != nil || r.Code != remoting.ResPullOffsetMoved || a.NextBeginOffset != 0 {
		t.Errorf("%d %s, next %d, %v", r.Code, r.Remark, a.NextBeginOffset, err)
	}
	if r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 2), nil); r.Code != 0 || len(records(t, r.Body)) != 1 {
		t.Errorf("a reset is taken once: %d %s", r.Code, r.Remark)
	}
}

// TestResetOfEveryKind is R071: a reset works for groups that pull and that pop, that are
// connected or not, backwards and forwards, outlives a restart, and takes effect once.
func TestResetOfEveryKind(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.fill("T", 6)
	reset := func(group string, offset int64) {
		t.Helper()
		h := remoting.InvokeBrokerToResetOffsetRequest{Group: group, Topic: "T", QueueID: remoting.Some[int32](0), Offset: remoting.Some(offset), Timestamp: -1}
		n.ok(remoting.ReqInvokeBrokerToResetOffset, &h, nil, nil)
	}
	pull := func(group string, at int64) int64 {
		t.Helper()
		var a remoting.PullMessageResponse
		r := n.call(remoting.ReqPullMessage, pullHeader(group, "T", 0, at), nil)
		if err := r.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if r.Code != remoting.ResPullOffsetMoved {
			return -1
		}
		return a.NextBeginOffset
	}
	pop := func(group string) (got []string) {
		t.Helper()
		r := n.call(remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: group, Topic: "T", QueueID: -1, MaxMsgNums: 32, InvisibleTime: 60000}, nil)
		for _, m := range records(t, r.Body) {
			got = append(got, string(m.Body))
		}
		return got
	}
	n.commit("pulls", "T", 3)
	if got := pop("pops"); len(got) != 6 {
		t.Fatalf("popped %v", got)
	}
	reset("pulls", 1) // backwards
	reset("pops", 2)
	n.stop()
	n = startNode(t, fs)
	if got := pull("pulls", 3); got != 1 {
		t.Errorf("after a restart: %d", got)
	}
	if got := pull("pulls", 1); got != -1 {
		t.Errorf("taken twice: %d", got)
	}
	if got := pop("pops"); len(got) != 4 || got[0] != "m2" {
		t.Errorf("popped %v", got)
	}
	if got := pop("pops"); len(got) != 0 {
		t.Errorf("taken twice: %v", got)
	}
	reset("pulls", 5) // forwards
	reset("pops", 5)
	if got := pull("pulls", 1); got != 5 {
		t.Errorf("forwards: %d", got)
	}
	if got := pop("pops"); len(got) != 1 || got[0] != "m5" {
		t.Errorf("forwards: %v", got)
	}
}

// TestConflictIsInTheAnswer is R063: who asks for a group's connections is told which
// members want different things.
func TestConflictIsInTheAnswer(t *testing.T) {
	n := newNode(t)
	n.consumer("c1", "g", "T")
	ask := func() string {
		return n.call(remoting.ReqGetConsumerConnectionList, &remoting.GetConsumerConnectionListRequest{ConsumerGroup: "g"}, nil).Remark
	}
	if got := ask(); got != "" {
		t.Errorf("one member: %q", got)
	}
	n.consumer("c2", "g", "U")
	if got := ask(); !strings.Contains(got, `topic T: client c1 subscribes to "*", client c2 to nothing`) || !strings.Contains(got, "topic U") {
		t.Errorf("two: %q", got)
	}
}

// TestShrinkingKeepsMessages is R073: fewer queues are refused while one that would go has
// messages that a group has not consumed, naming it.
func TestShrinkingKeepsMessages(t *testing.T) {
	n := newNode(t)
	n.topic("T", 4)
	n.send("T", 3, "x", "")
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 3) == 1 })
	shrink := func(force bool) *remoting.Command {
		return n.call(remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: "T", DefaultTopic: "TBW102",
			ReadQueueNums: 2, WriteQueueNums: 2, Perm: 6, TopicFilterType: "SINGLE_TAG", Force: force}, nil)
	}
	if r := shrink(false); r.Code != 1 || !strings.Contains(r.Remark, "queue 3") || strings.Contains(r.Remark, "queue 2") {
		t.Errorf("nobody has consumed it: %d %s", r.Code, r.Remark)
	}
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: 3, CommitOffset: 1}, nil, nil)
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "late", Topic: "T", QueueID: 0, CommitOffset: 0}, nil, nil)
	if r := shrink(false); r.Code != 1 {
		t.Errorf("one of two groups has: %d %s", r.Code, r.Remark)
	}
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "late", Topic: "T", QueueID: 3, CommitOffset: 1}, nil, nil)
	if r := shrink(false); r.Code != 0 {
		t.Errorf("all have: %d %s", r.Code, r.Remark)
	}
	n.topic("T", 4)
	n.send("T", 3, "y", "")
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 3) == 2 })
	if r := shrink(true); r.Code != 0 {
		t.Errorf("by force: %d %s", r.Code, r.Remark)
	}
}
