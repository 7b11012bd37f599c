package brokerrpc

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// The tests here run a whole broker on simulated time: what it promises to clients that
// come, renew and fall silent is a matter of minutes.

// locks asks for queues of T and returns those that the client holds now.
func (n *node) locks(c *transport.Conn, client string, queues ...int32) (held []int32) {
	n.t.Helper()
	b := remoting.LockBatchBody{ConsumerGroup: "g", ClientID: client}
	for _, q := range queues {
		b.MQSet = append(b.MQSet, remoting.MessageQueue{Topic: "T", BrokerName: n.Name, QueueID: q})
	}
	r := callOn(n.t, c, remoting.ReqLockBatchMQ, nil, remoting.Marshal(&b))
	var a remoting.LockBatchResponseBody
	if err := remoting.Unmarshal(r.Body, &a); err != nil || r.Code != 0 {
		n.t.Fatalf("%d %s %v", r.Code, r.Remark, err)
	}
	for _, q := range a.LockOKMQSet {
		held = append(held, q.QueueID)
	}
	slices.Sort(held)
	return held
}

// R037, R038: a queue changes hands when its holder lets go, or 60 s after the last renewal
// of one that was cut off or hangs, and not a moment before.
func TestQueueLocksChangeHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		defer n.stop()
		n.topic("T", 4)
		a, b := n.consumer("a", "g", "T"), n.consumer("b", "g", "T")
		want := func(what string, got []int32, queues ...int32) {
			t.Helper()
			if !slices.Equal(got, queues) {
				t.Fatalf("%s: holds %v, want %v", what, got, queues)
			}
		}
		want("a, first", n.locks(a, "a", 0, 1, 2, 3), 0, 1, 2, 3)
		want("b, while a holds all", n.locks(b, "b", 0, 1, 2, 3))

		let := remoting.LockBatchBody{ConsumerGroup: "g", ClientID: "b", MQSet: []remoting.MessageQueue{{Topic: "T", BrokerName: n.Name, QueueID: 2}}}
		callOn(t, b, remoting.ReqUnlockBatchMQ, nil, remoting.Marshal(&let))
		want("b, after it let go what is not its own", n.locks(b, "b", 2))
		let.ClientID = "a"
		callOn(t, a, remoting.ReqUnlockBatchMQ, nil, remoting.Marshal(&let))
		want("b, after a let go", n.locks(b, "b", 0, 1, 2, 3), 2)
		want("a, renewing", n.locks(a, "a", 0, 1, 2, 3), 0, 1, 3)

		for range 10 { // clients renew each 20 s
			time.Sleep(20 * time.Second)
			callOn(t, a, remoting.ReqHeartBeat, nil, heartbeat("a", "g", "T"))
			callOn(t, b, remoting.ReqHeartBeat, nil, heartbeat("b", "g", "T"))
			want("a, renewing", n.locks(a, "a", 0, 1, 3), 0, 1, 3)
			want("b, while a renews", n.locks(b, "b", 0, 1, 2, 3), 2)
		}
		a.Close()
		time.Sleep(time.Minute - time.Second)
		want("b, 59 s after a's last renewal", n.locks(b, "b", 0, 1, 2, 3), 2)
		time.Sleep(time.Second)
		want("b, after 60 s", n.locks(b, "b", 0, 1, 2, 3), 0, 1, 2, 3)
	})
}

// A client that says nothing for two minutes is gone: its connection is closed, the others
// of its group are told, and it is in no list. One that only sends heartbeats stays.
func TestSilentClientIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		defer n.stop()
		n.topic("T", 1)
		var told atomic.Int32
		alive := n.connect(func(r *transport.Request) {
			if r.Code == remoting.ReqNotifyConsumerIDsChanged {
				told.Add(1)
			}
		})
		beat := func() { callOn(t, alive, remoting.ReqHeartBeat, nil, heartbeat("alive", "g", "T")) }
		beat()
		var closed atomic.Bool
		n.consumer("silent", "g", "T").OnClose(func() { closed.Store(true) })
		members := func() []string {
			var l remoting.ConsumerListBody
			n.body(remoting.ReqGetConsumerListByGroup, &remoting.GetConsumerListByGroupRequest{ConsumerGroup: "g"}, &l)
			slices.Sort(l.ConsumerIDList)
			return l.ConsumerIDList
		}
		synctest.Wait()
		before := told.Load()
		for range 4 {
			time.Sleep(29 * time.Second)
			beat()
		}
		if got := members(); !slices.Equal(got, []string{"alive", "silent"}) || closed.Load() || told.Load() != before {
			t.Fatalf("after 116 s: %v, closed %v", got, closed.Load())
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := members(); !slices.Equal(got, []string{"alive"}) || !closed.Load() || told.Load() != before+1 {
			t.Errorf("after 136 s: %v, closed %v, told %d times", got, closed.Load(), told.Load()-before)
		}
	})
}

// The second form of heartbeats: without subscriptions as long as the broker knows those of
// their fingerprint, with them when it asks. A client may go back to the first form, and a
// restarted broker asks again.
func TestHeartbeatsWithoutSubscriptions(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.topic("U", 1)
	conn := n.connect(nil)
	send := func(fingerprint int32, topics ...string) (asks bool) {
		t.Helper()
		var d remoting.HeartbeatData
		if err := remoting.Unmarshal(heartbeat("c", "g", topics...), &d); err != nil {
			t.Fatal(err)
		}
		d.HeartbeatFingerprint, d.WithoutSub = fingerprint, fingerprint != 0 && len(topics) == 0
		r := callOn(t, conn, remoting.ReqHeartBeat, nil, remoting.Marshal(&d))
		if r.Code != 0 || !r.Ext.Is("IS_SUPPORT_HEART_BEAT_V2", "true") {
			t.Fatalf("%d %s", r.Code, r.Remark)
		}
		return r.Ext.Is("IS_SUB_CHANGE", "true")
	}
	// known is what a pull without an expression of its own relies on.
	known := func() (topics string) {
		for _, name := range []string{"T", "U"} {
			h := pullHeader("g", name, 0, 0)
			h.SysFlag, h.Subscription = 0, ""
			if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != remoting.ResSubscriptionNotExist {
				topics += name
			}
		}
		return topics
	}
	for i, step := range []struct {
		fingerprint int32
		topics      []string
		asks        bool
		known       string
	}{
		{7, nil, true, ""}, // the broker knows nothing of it
		{7, []string{"T"}, false, "T"},
		{7, nil, false, "T"},
		{7, nil, false, "T"},
		{8, nil, true, "T"}, // subscriptions have changed, and are not here yet
		{8, []string{"T", "U"}, false, "TU"},
		{8, nil, false, "TU"},
		{0, []string{"U"}, true, "U"}, // back to the first form, always answered so
		{0, []string{"U"}, true, "U"},
		{8, nil, true, "U"}, // what 8 stood for is no longer what the broker has
		{8, []string{"T", "U"}, false, "TU"},
		{9, []string{"T"}, false, "T"},
	} {
		if asks := send(step.fingerprint, step.topics...); asks != step.asks || known() != step.known {
			t.Errorf("step %d, %+v: asks %v, knows %q", i, step, asks, known())
		}
	}
	conn.Close()
	conn = n.connect(nil)
	if !send(9) {
		t.Error("a new connection is taken for one whose subscriptions are known")
	}
}

// TestDiffPullsSuggestTheMaster: Apache with slaveReadEnable sends a group that is far
// behind to a slave, and any other to the broker of its configuration. There is no
// replication here, so nobody else could answer.
func TestDiffPullsSuggestTheMaster(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 3)
	g := group.New("g")
	g.BrokerID, g.WhichBrokerWhenSlow = 2, 3
	if err := n.Groups.Put(g); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{0, 3, 100} {
		r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, offset), nil)
		var a remoting.PullMessageResponse
		if err := r.Decode(&a); err != nil || a.SuggestWhichBrokerID != 0 {
			t.Errorf("offset %d: %+v, %v", offset, a, err)
		}
	}
}
