package brokerrpc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// The tests here are what members of a classic group do to each other and to the broker
// when they come, go and are cut off, by the requests that their clients send.

// R066: a member of a broadcasting group that was cut off reads on where it was, through a
// restart of the broker too, whatever other members and the group's stored offset say.
func TestBroadcastGoesOnWhereItWas(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.fill("T", 5)
	read := func(at int64) (next int64, got int) {
		t.Helper()
		h := pullHeader("g", "T", 0, at)
		h.SysFlag &^= remoting.PullCommitOffset
		r := n.call(remoting.ReqPullMessage, h, nil)
		var a remoting.PullMessageResponse
		if err := r.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if r.Code != 0 {
			return a.NextBeginOffset, 0
		}
		return a.NextBeginOffset, len(records(t, r.Body))
	}
	conn := n.connect(nil)
	callOn(t, conn, remoting.ReqHeartBeat, nil, broadcast("cut off", "g", "T"))
	next, got := read(0)
	if got != 5 || next != 5 {
		t.Fatalf("read %d up to %d", got, next)
	}
	conn.Close()
	n.commit("g", "T", 1) // an offset of the group, which no member of it goes by
	for i := range 10 {
		n.send("T", 0, fmt.Sprint("meanwhile", i), "")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 15 })
	n.stop()
	n = startNode(t, fs)
	callOn(t, n.connect(nil), remoting.ReqHeartBeat, nil, broadcast("another", "g", "T"))
	if _, got := read(15); got != 0 {
		t.Errorf("a member that has read all got %d", got)
	}
	callOn(t, n.connect(nil), remoting.ReqHeartBeat, nil, broadcast("cut off", "g", "T"))
	if next, got = read(next); got != 10 || next != 15 {
		t.Errorf("after the cut: %d of 10 messages, up to %d", got, next)
	}
	if off, _ := n.Offsets.Query("g", "T", 0); off != 1 {
		t.Errorf("reading has moved the group's offset to %d", off)
	}
}

func broadcast(client, group, topic string) []byte {
	var d remoting.HeartbeatData
	_ = remoting.Unmarshal(heartbeat(client, group, topic), &d)
	d.ConsumerDataSet[0].MessageModel = remoting.Broadcasting
	return remoting.Marshal(&d)
}

// R067: consumers that start and stop quickly leave nothing behind: no member, no request
// that waits, no lock; and a late pull of one, with a position of then, moves nothing back.
func TestStoppedConsumersLeaveNothing(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	waiting := func(at, commit int64) *remoting.PullMessageRequest {
		h := pullHeader("g", "T", 0, at)
		h.SysFlag |= remoting.PullSuspend | remoting.PullCommitOffset
		h.SuspendTimeoutMillis, h.CommitOffset = 600_000, commit
		return h
	}
	cutOff := func(*remoting.Command, error) {}
	for i := range int64(200) {
		id := fmt.Sprint("c", i)
		conn := n.connect(nil)
		callOn(t, conn, remoting.ReqHeartBeat, nil, heartbeat(id, "g", "T"))
		if held := n.locks(conn, id, 1); i == 0 && len(held) != 1 {
			t.Fatal("no lock")
		}
		found := make(chan int32, 1)
		if err := conn.CallAsync(remoting.ReqPullMessage, waiting(i, i), nil, time.Hour, func(r *remoting.Command, err error) {
			if err == nil {
				found <- r.Code
			}
			close(found)
		}); err != nil {
			t.Fatal(err)
		}
		until(t, "the pull to wait", func() bool { return n.LongPoll.Waiting() == 1 })
		n.send("T", 0, id, "") // the pull is answered, and its client pulls on
		if code, ok := <-found; !ok || code != remoting.ResSuccess {
			t.Fatalf("cycle %d: answered with code %d", i, code)
		}
		if err := conn.CallAsync(remoting.ReqPullMessage, waiting(i+1, i), nil, time.Hour, cutOff); err != nil {
			t.Fatal(err)
		}
		until(t, "the commit", func() bool {
			off, ok := n.Offsets.Query("g", "T", 0)
			return ok && off == i && n.LongPoll.Waiting() == 1
		})
		if i%2 == 0 { // some say farewell, some do not
			unlock := remoting.LockBatchBody{ConsumerGroup: "g", ClientID: id, MQSet: []remoting.MessageQueue{{Topic: "T", BrokerName: n.Name, QueueID: 1}}}
			callOn(t, conn, remoting.ReqUnlockBatchMQ, nil, remoting.Marshal(&unlock))
			callOn(t, conn, remoting.ReqUnregisterClient, &remoting.UnregisterClientRequest{ClientID: id, ConsumerGroup: "g"}, nil)
		}
		conn.Close()
		until(t, "the consumer to be gone", func() bool { return n.LongPoll.Waiting() == 0 && len(n.Clients.ConsumerIDs("g")) == 0 })
		if off, _ := n.Offsets.Query("g", "T", 0); off != i {
			t.Fatalf("cycle %d: the group is at %d", i, off)
		}
	}
	late := waiting(200, 3)
	late.SysFlag &^= remoting.PullSuspend
	n.call(remoting.ReqPullMessage, late, nil)
	if off, _ := n.Offsets.Query("g", "T", 0); off != 199 {
		t.Errorf("a ghost has moved the group to %d", off)
	}
}

// R068: after a restart of the broker, after queues were added, and as members come and go,
// every queue is there to be consumed, at the place where it was left or from its beginning.
func TestEveryQueueGoesOn(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 4)
	got := make(map[string]int)
	var ends [8]int64
	sent := 0
	send := func(queues int32) {
		t.Helper()
		for q := range queues {
			n.send("T", q, fmt.Sprint("m", sent), "")
			ends[q]++
			sent++
		}
	}
	// drain is a member that has just got all the queues: it asks where to begin, reads to
	// the end, and commits when it goes.
	drain := func(queues int32) {
		t.Helper()
		conn := n.consumer("c", "g", "T")
		defer conn.Close()
		for q := range queues {
			at := n.whereToBegin("g", "T", q)
			until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", q) == ends[q] })
			for at < n.Store.MaxOffset("T", q) {
				r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", q, at), nil)
				for _, m := range records(t, r.Body) {
					got[string(m.Body)]++
					at = m.QueueOffset + 1
				}
			}
			n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: q, CommitOffset: at}, nil, nil)
		}
	}
	for q := range int32(4) { // the group has begun
		n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: q}, nil, nil)
	}
	send(4)
	drain(4)
	send(4)
	n.stop()
	n = startNode(t, fs)
	send(4)
	drain(4)
	n.topic("T", 8)
	send(8) // into the new queues before any member knows of them
	drain(8)
	send(8)
	drain(8)
	for i := range sent {
		if m := fmt.Sprint("m", i); got[m] != 1 {
			t.Errorf("%s came %d times", m, got[m])
		}
	}
}

// whereToBegin is what a classic client does with a queue that it has just got: it goes on
// at the stored offset, and begins a queue without one from the start.
func (n *node) whereToBegin(group, topic string, queue int32) int64 {
	n.t.Helper()
	r := n.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, QueueID: queue}, nil)
	var a remoting.QueryConsumerOffsetResponse
	if err := r.Decode(&a); err != nil || r.Code != 0 {
		n.t.Fatalf("where to begin: %d %s %v", r.Code, r.Remark, err)
	}
	return a.Offset
}

// R069: lite pull consumers that join and leave while messages come: each commits what it
// has read when a queue is taken from it, the next begins there, and nothing is missing or
// comes twice.
func TestLitePullHandsOverWithoutAGap(t *testing.T) {
	n := newNode(t)
	const queues = 8
	n.topic("T", queues)
	for q := range int32(queues) {
		n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: q}, nil, nil)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	got := make(map[string]int)
	var ends [queues]int64
	sent := 0
	type holding struct {
		member string
		at     int64
	}
	held := make([]holding, queues)
	members := []string{"m0"}
	for round := range 30 {
		if joins := len(members) == 1 || rng.IntN(2) == 0; joins {
			members = append(members, fmt.Sprint("m", round+1))
		} else {
			members = slices.Delete(members, 0, 1)
		}
		for q := range int32(queues) {
			if next := members[int(q)%len(members)]; held[q].member != next {
				if held[q].member != "" { // it leaves the queue
					n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: q, CommitOffset: held[q].at}, nil, nil)
				}
				held[q] = holding{next, n.whereToBegin("g", "T", q)}
			}
		}
		for range 100 {
			q := int32(rng.IntN(queues))
			n.send("T", q, fmt.Sprint("m", sent), "")
			ends[q]++
			sent++
		}
		for q := range int32(queues) { // each reads some, rarely to the end
			h := pullHeader("g", "T", q, held[q].at)
			h.MaxMsgNums = int32(1 + rng.IntN(32))
			for _, m := range records(t, n.call(remoting.ReqLitePullMessage, h, nil).Body) {
				got[string(m.Body)]++
				held[q].at = m.QueueOffset + 1
			}
		}
	}
	for q := range int32(queues) {
		until(t, "the rest", func() bool {
			for _, m := range records(t, n.call(remoting.ReqLitePullMessage, pullHeader("g", "T", q, held[q].at), nil).Body) {
				got[string(m.Body)]++
				held[q].at = m.QueueOffset + 1
			}
			return held[q].at == ends[q]
		})
	}
	for i := range sent {
		if m := fmt.Sprint("m", i); got[m] != 1 {
			t.Errorf("%s came %d times", m, got[m])
		}
	}
}
