package brokerrpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// numbered sends messages with the property n.
func (n *node) numbered(topic string, from, to int) {
	n.t.Helper()
	for i := from; i < to; i++ {
		n.send(topic, 0, fmt.Sprint(i), fmt.Sprintf("n\x01%d\x02", i))
	}
	until(n.t, "dispatch", func() bool { return n.Store.MaxOffset(topic, 0) >= int64(to) })
}

func sqlPull(offset int64, text string) *remoting.PullMessageRequest {
	h := pullHeader("g", "T", 0, offset)
	h.ExpressionType, h.Subscription = "SQL92", text
	return h
}

// subscribed is a heartbeat of a consumer with an SQL subscription.
func subscribed(text string, version int64) []byte {
	d := remoting.HeartbeatData{ClientID: "c", ConsumerDataSet: []remoting.ConsumerData{{GroupName: "g", ConsumeType: remoting.ConsumePassively,
		MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromLastOffset,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "T", SubString: text, ExpressionType: "SQL92", SubVersion: version}}}}}
	return remoting.Marshal(&d)
}

func (n *node) bodies(r *remoting.Command) string {
	var list []string
	for _, m := range records(n.t, r.Body) {
		list = append(list, string(m.Body))
	}
	return strings.Join(list, " ")
}

// SQL filters on a fresh server (R104): with the request, by heartbeat, on a pull that
// waits, on POP and its notification.
func TestSQL92(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.numbered("T", 0, 10)
	for _, code := range []int32{remoting.ReqPullMessage, remoting.ReqLitePullMessage} {
		if r := n.call(code, sqlPull(0, "n > 6 OR n = 2"), nil); r.Code != 0 || n.bodies(r) != "2 7 8 9" {
			t.Errorf("%s: %d %q %s", remoting.CodeName(code), r.Code, r.Remark, n.bodies(r))
		}
	}
	if r := n.call(remoting.ReqPullMessage, sqlPull(0, "n > 10"), nil); r.Code != remoting.ResPullRetryImmediately {
		t.Errorf("nothing matches: %d %q", r.Code, r.Remark)
	}

	n.ok(remoting.ReqHeartBeat, nil, subscribed("n BETWEEN 3 AND 4", 7), nil)
	h := pullHeader("g", "T", 0, 0)
	h.SysFlag, h.SubVersion = 0, 7
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != 0 || n.bodies(r) != "3 4" {
		t.Errorf("by heartbeat: %d %q %s", r.Code, r.Remark, n.bodies(r))
	}
	h.SubVersion = 8
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != remoting.ResSubscriptionNotLatest {
		t.Errorf("older than the consumer's: %d %q", r.Code, r.Remark)
	}

	h.SubVersion, h.QueueOffset, h.SysFlag, h.SuspendTimeoutMillis = 7, 10, remoting.PullSuspend, 60_000
	n.ok(remoting.ReqHeartBeat, nil, subscribed("n = 11", 8), nil)
	answer := make(chan *remoting.Command)
	go func() { answer <- n.call(remoting.ReqPullMessage, h, nil) }()
	until(t, "the pull to wait", func() bool { return n.LongPoll.Waiting() == 1 })
	n.numbered("T", 10, 11)
	if n.LongPoll.Waiting() != 1 {
		t.Error("woken by what it does not want")
	}
	n.numbered("T", 11, 12)
	if r := <-answer; r.Code != 0 || n.bodies(r) != "11" {
		t.Errorf("after waiting: %d %q %s", r.Code, r.Remark, n.bodies(r))
	}

	p := popHeader("T")
	p.ConsumerGroup, p.ExpType, p.Exp = "poppers", "SQL92", "n IN ('1', '11')"
	ask := &remoting.NotificationRequest{ConsumerGroup: "poppers", Topic: "T", QueueID: -1, ExpType: "SQL92", Exp: "n IN ('1', '11')"}
	notified := func() bool {
		var a remoting.NotificationResponse
		n.ok(remoting.ReqNotification, ask, nil, &a)
		return a.HAsMsg
	}
	if !notified() {
		t.Error("no notification of what is there")
	}
	if got, code := n.pop(p); code != 0 || len(got) != 2 || string(got[0].Body)+string(got[1].Body) != "111" {
		t.Errorf("popped %v, %d", got, code)
	}
	if notified() {
		t.Error("a notification of what nobody wants")
	}
	if got, code := n.pop(p); len(got) != 0 || code != remoting.ResPollingTimeout {
		t.Errorf("popped %v, %d", got, code)
	}
}

// An expression that can't be read is refused wherever it comes, with position and reason.
func TestSQL92ThatCannotBeRead(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	const bad, want = "n = 1 AND n > 'x'", `position 15, "'x'"`
	n.ok(remoting.ReqHeartBeat, nil, subscribed(bad, 7), nil)
	byHeartbeat := pullHeader("g", "T", 0, 0)
	byHeartbeat.SysFlag = 0
	pop := popHeader("T")
	pop.ExpType, pop.Exp = "SQL92", bad
	check := remoting.CheckClientBody{ClientID: "c", Group: "g", SubscriptionData: &remoting.SubscriptionData{Topic: "T", ExpressionType: "SQL92", SubString: bad}}
	for _, c := range []struct {
		code int32
		h    remoting.Header
		body []byte
	}{
		{remoting.ReqPullMessage, sqlPull(0, bad), nil},
		{remoting.ReqLitePullMessage, sqlPull(0, bad), nil},
		{remoting.ReqPullMessage, byHeartbeat, nil},
		{remoting.ReqPopMessage, pop, nil},
		{remoting.ReqNotification, &remoting.NotificationRequest{ConsumerGroup: "g", Topic: "T", QueueID: -1, ExpType: "SQL92", Exp: bad}, nil},
		{remoting.ReqCheckClientConfig, nil, remoting.Marshal(&check)},
	} {
		if r := n.call(c.code, c.h, c.body); r.Code != remoting.ResSubscriptionParseFailed || !strings.Contains(r.Remark, want) {
			t.Errorf("%s: %d %q", remoting.CodeName(c.code), r.Code, r.Remark)
		}
	}
	check.SubscriptionData.SubString = "n = 1"
	n.ok(remoting.ReqCheckClientConfig, nil, remoting.Marshal(&check), nil)
	if r := n.call(remoting.ReqPullMessage, sqlPull(0, ""), nil); r.Code != remoting.ResSubscriptionParseFailed {
		t.Errorf("no expression: %d %q", r.Code, r.Remark)
	}
}

// TestSQL92AfterRestart is R103: until the consumer has told its filter again, nothing is
// delivered that it might not want.
func TestSQL92AfterRestart(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.ok(remoting.ReqHeartBeat, nil, subscribed("n = 1", 7), nil)
	n.stop()
	n = startNode(t, fs)
	n.numbered("T", 0, 2)
	h := pullHeader("g", "T", 0, 0)
	h.SysFlag, h.SubVersion = 0, 7
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != remoting.ResSubscriptionNotExist || len(r.Body) != 0 {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
	n.ok(remoting.ReqHeartBeat, nil, subscribed("n = 1", 7), nil)
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != 0 || n.bodies(r) != "1" {
		t.Errorf("%d %q %s", r.Code, r.Remark, n.bodies(r))
	}
}

// TestDiffSQL92IsOn: Apache refuses SQL92 on pulls (code 1) unless enablePropertyFilter is
// set. Set to false, both refuse it there and serve it on POP.
func TestDiffSQL92IsOn(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	if r := n.call(remoting.ReqPullMessage, sqlPull(0, "n = 1"), nil); r.Code != remoting.ResPullNotFound {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
	n = startNode(t, vfs.NewMem(), func(b *config.Broker, _ *config.Store) { b.EnablePropertyFilter = false })
	n.topic("T", 1)
	if r := n.call(remoting.ReqPullMessage, sqlPull(0, "n = 1"), nil); r.Code != remoting.ResSystemError || !strings.Contains(r.Remark, "enablePropertyFilter") {
		t.Errorf("switched off: %d %q", r.Code, r.Remark)
	}
	n.numbered("T", 0, 2)
	p := popHeader("T")
	p.ExpType, p.Exp = "SQL92", "n = 1"
	if got, code := n.pop(p); code != 0 || len(got) != 1 {
		t.Errorf("pop: %v, %d", got, code)
	}
}

// TestDiffSQL92MustEnd: Apache stops reading where a condition ends and takes no notice of
// the rest: these are to it n = 1, the property name as a condition, and n = 0.
func TestDiffSQL92MustEnd(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	for _, text := range []string{"n = 1 m = 2", "name LIKE 'x%'", "n = 007", "n = 1)"} {
		if r := n.call(remoting.ReqPullMessage, sqlPull(0, text), nil); r.Code != remoting.ResSubscriptionParseFailed {
			t.Errorf("%s: %d %q", text, r.Code, r.Remark)
		}
	}
}

// TestDiffFilterOfHeartbeat: Apache answers 27 and no reason to a pull by an expression in
// a heartbeat that it could not read.
func TestDiffFilterOfHeartbeat(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.ok(remoting.ReqHeartBeat, nil, subscribed("n =", 7), nil)
	h := pullHeader("g", "T", 0, 0)
	h.SysFlag = 0
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != remoting.ResSubscriptionParseFailed || !strings.Contains(r.Remark, "at its end") {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
}

// TestDiffTagsOfOneHash: Apache delivers both, and leaves it to the client to drop one; a
// gRPC client does not.
func TestDiffTagsOfOneHash(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.send("T", 0, "wanted", "TAGS\x01Aa\x02")
	n.send("T", 0, "of the same hash", "TAGS\x01BB\x02")
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 2 })
	h := pullHeader("g", "T", 0, 0)
	h.Subscription = "Aa"
	if r := n.call(remoting.ReqPullMessage, h, nil); n.bodies(r) != "wanted" {
		t.Errorf("pulled %s", n.bodies(r))
	}
	p := popHeader("T")
	p.ExpType, p.Exp = "TAG", "Aa"
	if got, _ := n.pop(p); len(got) != 1 || string(got[0].Body) != "wanted" {
		t.Errorf("popped %v", got)
	}
}

// TestPositionsPassWhatIsNotWanted is R070: messages that a subscription does not take are
// no backlog of it once its consumer has looked at them.
func TestPositionsPassWhatIsNotWanted(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	const total = 1000
	for range total {
		n.send("T", 0, "x", "TAGS\x01B\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == total })
	for kind, text := range map[string]string{"TAG": "A", "SQL92": "TAGS = 'A'"} {
		h := pullHeader("g-"+kind, "T", 0, 0)
		h.ExpressionType, h.Subscription = kind, text
		var a remoting.PullMessageResponse
		for pulls := 0; ; pulls++ {
			r := n.call(remoting.ReqPullMessage, h, nil)
			if err := r.Decode(&a); err != nil || pulls > 10 {
				t.Fatalf("%s: pull %d at %d: %d %q, %v", kind, pulls, h.QueueOffset, r.Code, r.Remark, err)
			}
			if h.QueueOffset = a.NextBeginOffset; r.Code == remoting.ResPullNotFound {
				break
			}
			if r.Code != remoting.ResPullRetryImmediately || len(r.Body) != 0 {
				t.Fatalf("%s: %d %q", kind, r.Code, r.Remark)
			}
		}
		// The client commits where it is going on.
		n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: h.ConsumerGroup, Topic: "T", CommitOffset: h.QueueOffset}, nil, nil)
		var stored remoting.QueryConsumerOffsetResponse
		n.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: h.ConsumerGroup, Topic: "T"}, nil, &stored)
		if stored.Offset != total {
			t.Errorf("%s: %d of %d are backlog still", kind, total-stored.Offset, total)
		}
	}
}
