package brokerrpc

import (
	"testing"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestPopState: a slow message group holds up its own messages only, which shows; releasing
// what it holds lets it go on, and its holder's receipt is void.
func TestPopState(t *testing.T) {
	n := newNode(t)
	if err := n.Topics.Put(&topic.Config{Name: "F", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "FIFO"}}); err != nil {
		t.Fatal(err)
	}
	for i, g := range []string{"slow", "slow", "fast", "slow"} {
		n.send("F", 0, string(rune('a'+i)), "__SHARDINGKEY\x01"+g+"\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("F", 0) == 4 })
	n.ok(remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: "client@host"}), nil)
	h := popHeader("F")
	h.MaxMsgNums = 1
	got, _ := n.pop(h)
	if len(got) != 1 || string(got[0].Body) != "a" {
		t.Fatalf("popped %v", got)
	}
	if got, _ := n.pop(h); len(got) != 1 || string(got[0].Body) != "c" {
		t.Fatalf("popped %v", got)
	}
	state := func() remoting.PopQueue {
		t.Helper()
		var s remoting.PopState
		if err := remoting.Unmarshal(n.ok(remoting.ReqBolideGetPopState, &remoting.GetPopStateRequest{Group: "g", Limit: 10}, nil, nil), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Queues) != 1 {
			t.Fatalf("%+v", s)
		}
		return s.Queues[0]
	}
	q := state()
	if q.Topic != "F" || q.InFlight != 2 || q.Aside != 1 || q.Ready != 1 || q.Lowest != 0 || len(q.Held) != 2 || q.Oldest != got[0].receipt.PopTime {
		t.Errorf("%+v", q)
	}
	var one remoting.PopState
	if err := remoting.Unmarshal(n.ok(remoting.ReqBolideGetPopState, &remoting.GetPopStateRequest{Group: "g", Topic: "F", Offset: remoting.Some(int64(2))}, nil, nil), &one); err != nil {
		t.Fatal(err)
	}
	if len(one.Queues) != 1 || len(one.Queues[0].Held) != 1 || one.Queues[0].Held[0].Offsets[0] != 2 || one.Queues[0].Held[0].MessageGroup != "fast" {
		t.Errorf("the holder of one message: %+v", one)
	}
	if f := q.Held[0]; f.Holder != "client@host" || f.MessageGroup != "slow" || f.Due-f.PopTime != 60_000 || f.Offsets[0] != 0 {
		t.Errorf("%+v", f)
	}
	if len(q.Blocked) != 1 || q.Blocked[0].MessageGroup != "slow" || q.Blocked[0].Offset != 0 || q.Blocked[0].Waiting != 1 {
		t.Errorf("blocked %+v", q.Blocked)
	}

	f := q.Held[0]
	of := receipt.Handle{StartOffset: 0, PopTime: f.PopTime, InvisibleTime: f.Invisible, Broker: n.Name, LogOffset: -1}
	n.ok(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{ConsumerGroup: "g", Topic: "F", ExtraInfo: of.String(), Suspend: true}, nil, nil)
	if r := n.ack(got[0]); r.Code == 0 {
		t.Error("what was released is acknowledged with its old receipt")
	}
	until(t, "the released message", func() bool { q := state(); return len(q.Held) == 1 && q.Aside == 2 })
	again, _ := n.pop(h)
	if len(again) != 1 || string(again[0].Body) != "a" {
		t.Fatalf("after the release: %v", again)
	}
	n.ok(remoting.ReqPopRollback, nil, nil, nil)
}
