package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	sends "github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// TestRepeatedSendsThroughRestarts: a send that is repeated after its server was killed, or
// restarted, is found in the log, whatever kind it is, and also a batch; after the window it
// is not.
func TestRepeatedSendsThroughRestarts(t *testing.T) {
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c})
	on := func() {
		if err := b.Configure([]config.Property{{Name: "repeatedSendWindow", Value: "60000"}}); err != nil {
			t.Fatal(err)
		}
	}
	on()
	if err := b.Topics.Put(&topic.Config{Name: "T", ReadQueues: 1, WriteQueues: 1, Perm: 6, FilterType: topic.SingleTag}); err != nil {
		t.Fatal(err)
	}
	send := func(id string, properties ...string) string {
		out := make(chan string, 1)
		r := &sends.Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: "T", Body: []byte("x"), BornHost: brokertest.Host, StoreHost: brokertest.Host,
			BornTimestamp: 1, Properties: message.Properties("").WithAll(append([]string{"UNIQ_KEY", id}, properties...)...)}}
		b.Publish.Send(r, func(at storage.Placed, err error) {
			out <- fmt.Sprint(at.PhysicalOffset, " ", at.QueueOffset, " ", err)
		})
		defer b.Dispatched()
		return <-out
	}
	batch := func() string {
		out := make(chan string, 1)
		var ms []*message.Message
		for _, id := range []string{"b1", "b2"} {
			ms = append(ms, &message.Message{Body: []byte("x"), BornHost: brokertest.Host, StoreHost: brokertest.Host, Properties: message.Properties("").With("UNIQ_KEY", id)})
		}
		b.Publish.SendBatch(&sends.Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: "T", BornHost: brokertest.Host, StoreHost: brokertest.Host, BornTimestamp: 1}}, ms,
			func(at []storage.Placed, err error) {
				out <- fmt.Sprint(at[0].PhysicalOffset, at[1].PhysicalOffset, err)
			})
		defer b.Dispatched()
		return <-out
	}
	all := func() []string {
		return []string{send("plain"), send("level", "DELAY", "18"), send("half", "TRAN_MSG", "true", "PGROUP", "p"), batch()}
	}
	first := all()
	for _, step := range []struct {
		what string
		do   func() *brokertest.Broker
	}{
		{"at once", func() *brokertest.Broker { return b }},
		{"killed", func() *brokertest.Broker { return b.Kill() }},
		{"restarted", func() *brokertest.Broker { return b.Restart() }},
	} {
		b = step.do()
		on()
		for i, got := range all() {
			if got != first[i] {
				t.Errorf("%s: send %d is at %s, the first copy at %s", step.what, i, got, first[i])
			}
		}
	}
	c.Advance(2 * time.Minute)
	if got := send("plain"); got == first[0] {
		t.Errorf("after the window: %s", got)
	}
}
