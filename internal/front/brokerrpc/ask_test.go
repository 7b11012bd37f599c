package brokerrpc

import (
	"strings"
	"testing"

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
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 3 })
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
