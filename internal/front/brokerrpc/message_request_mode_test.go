package brokerrpc

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func (n *node) setMode(group, topic, mode string) {
	n.t.Helper()
	n.ok(remoting.ReqSetMessageRequestMode, nil, remoting.Marshal(&remoting.SetMessageRequestModeBody{Topic: topic, ConsumerGroup: group, Mode: mode}), nil)
}

// TestDiffSwitchFromPopToPull: Apache leaves what waits in POP's retry topics there, and
// what is in flight goes there, too; a group that comes back to POP reads from where it
// popped last. The switch holds over a restart.
func TestDiffSwitchFromPopToPull(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	if err := n.Groups.Put(group.New("g")); err != nil {
		t.Fatal(err)
	}
	n.setMode("g", "T", remoting.ModePop)
	n.sendMany("T", 0, "lapsed", "held", "lost")
	pop := func() []popped {
		h := popHeader("T")
		h.MaxMsgNums = 1
		got, _ := n.pop(h)
		return got
	}
	n.change(pop()[0], 0)
	until(t, "the copy", func() bool { return n.Store.MaxOffset("%RETRY%g_T", 0) == 1 })
	// The turn to read retry topics first is the one after four others.
	held, lost := pop()[0], pop()[0]
	if string(held.Body) != "held" || string(lost.Body) != "lost" {
		t.Fatalf("%s, %s", held.Body, lost.Body)
	}
	n.setMode("g", "T", remoting.ModePull)
	retried := func(want ...string) {
		t.Helper()
		until(t, "messages in the retry topic", func() bool { return n.Store.MaxOffset("%RETRY%g", 0) == int64(len(want)) })
		for i, m := range records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "%RETRY%g", 0, 0), nil, nil)) {
			if string(m.Body) != want[i] || m.Properties.Value("RETRY_TOPIC") != "T" || m.ReconsumeTimes != 1 {
				t.Errorf("message %d: %s of %s, attempt %d", i, m.Body, m.Properties.Value("RETRY_TOPIC"), m.ReconsumeTimes)
			}
		}
	}
	retried("lapsed")
	var at remoting.QueryConsumerOffsetResponse
	n.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T"}, nil, &at)
	if at.Offset != 3 {
		t.Errorf("pulling goes on at %d, want 3", at.Offset)
	}
	if r := n.ack(held); r.Code != 0 {
		t.Errorf("ack of what was in flight: %d %s", r.Code, r.Remark)
	}

	n.stop()
	n = startNode(t, fs)
	n.Clock.Advance(2 * time.Minute)
	retried("lapsed", "lost")
	n.sendMany("T", 0, "pulled", "popped")
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 4}, nil, nil)
	n.setMode("g", "T", remoting.ModePop)
	if got := pop(); len(got) != 1 || string(got[0].Body) != "popped" {
		t.Errorf("%v", got)
	}
}
