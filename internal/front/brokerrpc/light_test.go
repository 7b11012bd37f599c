package brokerrpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// lightOffset is the offset that a message has in one of its further queues, as clients find it.
func lightOffset(t *testing.T, m *message.Message, queue string) (at int64) {
	t.Helper()
	queues := strings.Split(m.Properties.Value(message.PropertyInnerMultiDispatch), ",")
	offsets := strings.Split(m.Properties.Value(message.PropertyInnerMultiQueueOffset), ",")
	i := slices.Index(queues, queue)
	if i < 0 || len(offsets) != len(queues) {
		t.Fatalf("%s is not in %v at %v", queue, queues, offsets)
	}
	if _, err := fmt.Sscan(offsets[i], &at); err != nil {
		t.Fatal(err)
	}
	return at
}

// Multi-dispatch: a message is in its own topic and in the light queues that it names, each
// with an offset of its own; those are pulled like topics, waited for, and their offsets kept.
func TestLightQueuesArePulled(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	for i := range 4 {
		n.send("T", 0, fmt.Sprint(i), "INNER_MULTI_DISPATCH\x01%LMQ%all,other,%LMQ%"+fmt.Sprint(i%2)+"\x02INNER_MULTI_QUEUE_OFFSET\x017,7,7\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("%LMQ%all", 0) == 4 })
	for queue, want := range map[string][]string{"T": {"0", "1", "2", "3"}, "%LMQ%all": {"0", "1", "2", "3"}, "%LMQ%0": {"0", "2"}, "%LMQ%1": {"1", "3"}} {
		var got []string
		for i, m := range records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", queue, 0, 0), nil, nil)) {
			got = append(got, string(m.Body))
			if m.Topic != "T" || strings.HasPrefix(queue, "%LMQ%") && lightOffset(t, m, queue) != int64(i) {
				t.Errorf("%s: message %d of topic %s has %q", queue, i, m.Topic, m.Properties)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", queue, got, want)
		}
	}
	// One who waits for a light queue is woken by a message of the topic.
	h := pullHeader("g", "%LMQ%1", 0, 2)
	h.SysFlag |= remoting.PullSuspend
	h.SuspendTimeoutMillis = 30_000
	answer := make(chan []byte, 1)
	go func() { answer <- n.ok(remoting.ReqPullMessage, h, nil, nil) }()
	until(t, "a suspended pull", func() bool { return n.LongPoll.Waiting() == 1 })
	n.send("T", 0, "late", "INNER_MULTI_DISPATCH\x01%LMQ%1\x02")
	if got := records(t, <-answer); len(got) != 1 || string(got[0].Body) != "late" {
		t.Errorf("woken by %v", got)
	}
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "%LMQ%1", QueueID: 0, CommitOffset: 3}, nil, nil)
	n.stop()

	n = startNode(t, n.fs)
	var a remoting.QueryConsumerOffsetResponse
	if n.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "%LMQ%1", QueueID: 0}, nil, &a); a.Offset != 3 {
		t.Errorf("the group is at %d after a restart", a.Offset)
	}
	if got := n.send("T", 0, "x", "INNER_MULTI_DISPATCH\x01%LMQ%1\x02"); got.QueueOffset != 5 {
		t.Errorf("the next message has offset %d in its topic", got.QueueOffset)
	}
	until(t, "the next message", func() bool { return n.Store.MaxOffset("%LMQ%1", 0) == 4 })
}

// R023: POP on light queues delivers each message once.
func TestLightQueuesArePopped(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	const queues, messages = 50, 500
	for i := range messages {
		n.send("T", int32(i%2), fmt.Sprint(i), "INNER_MULTI_DISPATCH\x01%LMQ%"+fmt.Sprint(i%queues)+"\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("%LMQ%49", 0) == messages/queues })
	seen := map[string]int{}
	for again := range 2 {
		for q := range queues {
			queue := fmt.Sprintf("%%LMQ%%%d", q)
			r := n.call(remoting.ReqPopMessage, popHeader(queue), nil)
			if r.Code != 0 {
				if again == 0 {
					t.Fatalf("%s: %d %s", queue, r.Code, r.Remark)
				}
				continue
			}
			var a remoting.PopMessageResponse
			if err := r.Decode(&a); err != nil {
				t.Fatal(err)
			}
			offsets, err := receipt.ParseOffsets(a.MsgOffsetInfo)
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range records(t, r.Body) {
				seen[string(m.Body)]++
				at := lightOffset(t, m, queue)
				if got := offsets[receipt.Queue{QueueID: 0}]; i >= len(got) || got[i] != at {
					t.Fatalf("%s: message %d of the answer is at %d, its offsets are %v", queue, i, at, got)
				}
				if a := n.call(remoting.ReqAckMessage, &remoting.AckMessageRequest{ConsumerGroup: "g", Topic: queue, QueueID: 0, Offset: at,
					ExtraInfo: receipt.Handle{StartOffset: at, PopTime: a.PopTime, InvisibleTime: a.InvisibleTime, ReviveQueue: a.ReviveQid, Broker: n.Name, QueueID: 0, Offset: at, LogOffset: -1}.String()}, nil); a.Code != 0 {
					t.Fatalf("ack: %d %s", a.Code, a.Remark)
				}
			}
		}
	}
	if len(seen) != messages {
		t.Errorf("%d of %d messages", len(seen), messages)
	}
	for body, times := range seen {
		if times != 1 {
			t.Errorf("%s was delivered %d times", body, times)
		}
	}
}
