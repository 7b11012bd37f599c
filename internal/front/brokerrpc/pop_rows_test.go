package brokerrpc

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// drain pops and acknowledges until nothing is left, and returns the bodies in their order.
func (n *node) drain(h *remoting.PopMessageRequest) (bodies []string) {
	n.t.Helper()
	for {
		list, _ := n.pop(h)
		if len(list) == 0 {
			return bodies
		}
		for _, m := range list {
			bodies = append(bodies, string(m.Body))
			if r := n.ack(m); r.Code != 0 {
				n.t.Fatalf("ack of %s: %d %s", m.Body, r.Code, r.Remark)
			}
		}
	}
}

// R014: an ordered group has consumed a hundred messages. A reset to the fiftieth, with a
// member there, with one that holds messages, with none, gives it the rest again, each once
// and in order.
func TestResetOfAnOrderedGroup(t *testing.T) {
	n := newNode(t)
	if err := n.Topics.Put(&topic.Config{Name: "F", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "FIFO"}}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprint("m", i))
		n.send("F", 0, all[i], "__SHARDINGKEY\x01one\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("F", 0) == 100 })
	c := n.consumer("c", "g", "F")
	h := popHeader("F")
	h.Order = true
	for round, before := range []func(){
		func() {},
		func() { n.reset("g", "F", 50) },
		func() { // what it holds is given up
			n.reset("g", "F", 0)
			if list, _ := n.pop(h); len(list) != 32 {
				t.Fatalf("popped %d", len(list))
			}
			n.reset("g", "F", 50)
		},
		func() { c.Close(); n.reset("g", "F", 50) },
	} {
		before()
		want := all
		if round > 0 {
			want = all[50:]
		}
		if got := n.drain(h); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round %d: got %v", round, got)
		}
	}
}

func (n *node) reset(group, name string, offset int64) {
	n.t.Helper()
	n.ok(remoting.ReqInvokeBrokerToResetOffset, &remoting.InvokeBrokerToResetOffsetRequest{Group: group, Topic: name, QueueID: remoting.Some(int32(0)),
		Offset: remoting.Some(offset), Timestamp: -1}, nil, nil)
}

// R018: with everything acknowledged, out of order and by two requests at a time, the
// committed position is the end soon, and still is after the process was killed; nothing
// comes again.
func TestCommittedPositionIsTheEnd(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := startNode(t, fs)
	n.topic("T", 4)
	const sent = 2000
	for i := range sent {
		n.send("T", int32(i%4), fmt.Sprint("m", i), "")
	}
	until(t, "dispatch", func() bool { return n.Store.LogMax() >= n.Store.LogEnd() })
	h, done := popHeader("T"), 0
	for done < sent {
		a, _ := n.pop(h)
		b, _ := n.pop(h)
		for _, list := range [][]popped{b, a} {
			for i := range list {
				if r := n.ack(list[len(list)-1-i]); r.Code != 0 {
					t.Fatalf("%d %s", r.Code, r.Remark)
				}
				done++
			}
		}
	}
	behind := func(n *node) (sum int64) {
		queues := n.stats("g")
		if len(queues) != 4 {
			t.Fatalf("%d queues", len(queues))
		}
		for _, q := range queues {
			sum += q.BrokerOffset - q.ConsumerOffset
		}
		return sum
	}
	until(t, "the committed position", func() bool { return behind(n) == 0 })
	killed := startNode(t, crash(fs))
	if lag := behind(killed); lag != 0 {
		t.Errorf("%d behind after the kill", lag)
	}
	if got := killed.drain(h); len(got) > 0 {
		t.Errorf("%d messages came again", len(got))
	}
}
