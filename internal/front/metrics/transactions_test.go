package metrics

import (
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// TestTransactions: the figures follow what happens to half messages.
func TestTransactions(t *testing.T) {
	b := newTraced(t)
	for range 3 {
		b.send("T", 0, message.Properties("TRAN_MSG\x01true\x02PGROUP\x01p\x02"))
	}
	end := func(offset int64, commit bool) {
		t.Helper()
		list, _ := b.Txn.List("T", "p", 10)
		for _, u := range list {
			if u.QueueOffset == offset {
				done := make(chan error, 1)
				b.Txn.End(txn.Decision{Commit: commit, QueueOffset: u.QueueOffset, LogOffset: u.LogOffset, Group: "p"}, func(err error) { done <- err })
				b.must(<-done)
			}
		}
		b.Dispatched()
	}
	want := func(figures map[string]int64) {
		t.Helper()
		page := b.page()
		for name, n := range figures {
			if got, ok := page[name]; !ok || got != n {
				t.Errorf("%s is %d, %v; want %d", name, got, ok, n)
			}
		}
	}
	want(map[string]int64{`rocketmq_half_messages{topic="T"}`: 3})
	b.clock.Advance(time.Minute + 10*time.Second)
	if age := b.page()[`bolide_half_message_age{topic="T"}`]; age < 70_000 {
		t.Errorf("age %d", age)
	}
	end(0, true)
	end(1, false)
	want(map[string]int64{
		`rocketmq_half_messages{topic="T"}`:                          1,
		`rocketmq_commit_messages_total{topic="T"}`:                  1,
		`rocketmq_rollback_messages_total{topic="T"}`:                1,
		`bolide_given_up_messages_total{topic="T"}`:                  0,
		`rocketmq_finish_message_latency_bucket{topic="T",le="60"}`:  0,
		`rocketmq_finish_message_latency_bucket{topic="T",le="600"}`: 1,
		`rocketmq_finish_message_latency_count{topic="T"}`:           1,
	})
	end(2, true)
	want(map[string]int64{`rocketmq_half_messages{topic="T"}`: 0, `bolide_half_message_age{topic="T"}`: 0, `rocketmq_commit_messages_total{topic="T"}`: 2})
}
