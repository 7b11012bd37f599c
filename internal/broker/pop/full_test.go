package pop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// receive pops once and returns what came, decoded.
func receive(t *testing.T, b *brokertest.Broker) (got []message.Message) {
	t.Helper()
	done := make(chan error, 1)
	b.Pop.Pop(pop.Request{Group: "g", Topic: "orders", QueueID: -1, Max: 16, Invisible: 10_000, InitMode: pop.InitMin},
		func(r pop.Result, err error) {
			for _, batch := range r.Batches {
				for _, rec := range batch.Records {
					var m message.Message
					if _, derr := message.DecodeStored(append([]byte(nil), rec.Bytes...), &m); derr != nil {
						err = derr
					}
					got = append(got, m)
				}
			}
			r.Release()
			done <- err
		})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return got
}

// A message whose sender left no room in its properties is redelivered like any other, and
// dead-lettered when its attempts are over; it does not stay in the back-off for ever.
func TestFullPropertiesAreRedelivered(t *testing.T) {
	for _, free := range []int{0, 20, 100, 400} {
		c := clock.New()
		b := brokertest.Open(t, brokertest.Options{Clock: c})
		cfg := topic.New("orders")
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Groups.GetOrCreate("g"); err != nil {
			t.Fatal(err)
		}
		limit, _ := b.Groups.Get("g")
		text := "UNIQ_KEY\x01k\x02CLUSTER\x01" + b.Cluster + "\x02k\x01"
		text += strings.Repeat("v", message.MaxProperties-free-len(text)-1) + "\x02"
		sent := make(chan error, 1)
		b.Publish.Publish(&message.Message{Topic: "orders", Body: []byte("x"), BornTimestamp: 1, BornHost: brokertest.Host, Properties: message.Properties(text)},
			func(_ storage.Placed, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatalf("%d bytes free: %v", free, err)
		}
		b.Dispatched()
		for attempt := range limit.RetryMaxTimes + 1 {
			got := receive(t, b)
			if len(got) != 1 || got[0].ReconsumeTimes != attempt {
				t.Fatalf("%d bytes free, attempt %d: %d messages", free, attempt, len(got))
			}
			c.Advance(11 * time.Second)
			b.Dispatched()
			if attempt == 1 {
				b = b.Restart()
			}
		}
		dead := names.DeadLetter("g")
		brokertest.Until(t, "the dead letter", func() bool { return b.Store.MaxOffset(dead, 0) == 1 })
		if got := receive(t, b); len(got) != 0 {
			t.Errorf("%d bytes free: the dead letter is delivered as well", free)
		}
		b.Stop()
	}
}
