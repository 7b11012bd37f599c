package broker_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/pop"
	pub "github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func sendHeld(t testing.TB, b *brokertest.Broker, name string, done func(storage.Placed, error)) {
	m := &message.Message{Topic: name, Body: []byte("x"), BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: brokertest.Host, BornTimestamp: 1}
	b.Publish.Send(&pub.Request{Message: m, MaxReconsumeTimes: -1, Held: true}, done)
}

// Readers with rounds, each with its own topic: nothing is left lying.
func TestReadersWithRounds(t *testing.T) {
	b := brokertest.Open(t, brokertest.Options{})
	var wg sync.WaitGroup
	for k := range 6 {
		name := "T" + string(rune('a'+k%3))
		if k < 3 {
			b.Topics.Put(&topic.Config{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: 6, FilterType: topic.SingleTag})
		}
		b.Groups.GetOrCreate("g")
		wg.Go(func() {
			for i := range 300 {
				got := make(chan pop.Result, 1)
				b.BeginRound()
				b.Pop.Pop(pop.Request{Group: "g", Topic: name, QueueID: -1, Max: 1, Invisible: 60000, PollTime: time.Minute}, func(r pop.Result, err error) { got <- r })
				if i%2 == 0 {
					b.EndRound()
					b.BeginRound()
				}
				sent := make(chan error, 1)
				sendHeld(t, b, name, func(_ storage.Placed, err error) { sent <- err })
				b.EndRound()
				select {
				case <-sent:
				case <-time.After(30 * time.Second):
					t.Error("a message is not stored")
					return
				}
				select {
				case r := <-got:
					if r.Status != pop.Found {
						t.Error(r.Status)
					}
				case <-time.After(30 * time.Second):
					t.Error("a pop is not answered")
					return
				}
			}
		})
	}
	wg.Wait()
}
