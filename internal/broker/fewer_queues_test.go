package broker_test

import (
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	sends "github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// R073: what waits for its time or for a decision while its topic loses queues comes in one that
// is left, where somebody reads it.
func TestFewerQueuesStrandNothingThatWaits(t *testing.T) {
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c})
	resize := func(queues int32) {
		if err := b.Topics.Put(&topic.Config{Name: "T", ReadQueues: queues, WriteQueues: queues, Perm: 6, FilterType: topic.SingleTag}); err != nil {
			t.Fatal(err)
		}
	}
	resize(8)
	for i, properties := range [][]string{{"TIMER_DELAY_SEC", "60"}, {"DELAY", "5"}, {"TRAN_MSG", "true", "PGROUP", "p"}, {"TRAN_MSG", "true", "PGROUP", "p", "DELAY", "4"}} {
		sent := make(chan error, 1)
		b.Publish.Send(&sends.Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: "T", QueueID: 7, Body: []byte("x"), BornHost: brokertest.Host, BornTimestamp: 1,
			Properties: message.Properties("").WithAll(append(properties, "UNIQ_KEY", string(rune('a'+i)))...)}}, func(_ storage.Placed, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	b.Dispatched()
	resize(2)
	for at := range int64(2) {
		decided := make(chan error, 1)
		b.Txn.End(txn.Decision{Commit: true, QueueOffset: at, LogOffset: b.HalfAt(t, at), Group: "p"}, func(err error) { decided <- err })
		if err := <-decided; err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(2 * time.Minute)
	b.Dispatched()
	for queue, want := range map[int32]int64{0: 0, 1: 4, 7: 0} {
		if n := b.Store.MaxOffset("T", queue); n != want {
			t.Errorf("queue %d has %d messages, want %d", queue, n, want)
		}
	}
}
