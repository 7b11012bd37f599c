package broker_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

var producer = netip.MustParseAddrPort("10.0.0.1:5000")

func makeTopic(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	if err := b.Topics.Put(&topic.Config{Name: "T", ReadQueues: 1, WriteQueues: 1, Perm: 6, FilterType: topic.SingleTag}); err != nil {
		t.Fatal(err)
	}
}

// publish sends one message and waits for its acknowledgement.
func publish(t *testing.T, b *brokertest.Broker, body, level string) {
	t.Helper()
	m := &message.Message{Topic: "T", Body: []byte(body), BornHost: producer, StoreHost: brokertest.Host}
	if level != "" {
		m.Properties = m.Properties.With(message.PropertyDelay, level)
	}
	done := make(chan error, 1)
	b.Publish.Publish(m, func(_ storage.Placed, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// bodies counts the messages of the topic by their bodies.
func bodies(b *brokertest.Broker) map[string]int {
	seen := map[string]int{}
	for next := b.Store.MinOffset("T", 0); ; {
		read := b.Store.Read(storage.ReadRequest{Topic: "T", Offset: next, MaxMessages: 1000, MaxBytes: 1 << 20})
		if read.Status != storage.Found {
			return seen
		}
		for i := range read.Records {
			var m message.Message
			if _, err := message.DecodeStored(read.Records[i].Bytes, &m); err == nil {
				seen[string(m.Body)]++
			}
		}
		next = read.Next
		read.Release()
	}
}

// TestDelaysThroughKills is R076 and R080, and P6 for delay levels: the process is killed
// again and again while delayed messages are sent and delivered; each comes exactly once.
func TestDelaysThroughKills(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	b := brokertest.Open(t, brokertest.Options{})
	makeTopic(t, b)
	sent := 0
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		for range 1 + rng.IntN(60) {
			publish(t, b, fmt.Sprintf("m%d", sent), fmt.Sprint(1+rng.IntN(3)))
			sent++
		}
		// Kill in the middle of a delivery, at a place that nobody chose.
		advanced := make(chan struct{})
		go func() {
			b.Clock.Advance(time.Duration(rng.IntN(8)) * time.Second)
			close(advanced)
		}()
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		next := b.Kill()
		<-advanced
		b = next
	}
	b.Clock.Advance(time.Minute)
	b.Dispatched()
	seen := bodies(b)
	for i := range sent {
		if n := seen[fmt.Sprintf("m%d", i)]; n != 1 {
			t.Errorf("m%d came %d times", i, n)
		}
	}
}

// TestPowerCuts: what synchronous flush has acknowledged is there after any power cut,
// and the whole check finds nothing wrong.
func TestPowerCuts(t *testing.T) {
	b := brokertest.Open(t, brokertest.Options{Tune: func(_ *config.Broker, s *config.Store) { s.FlushDiskType = "SYNC_FLUSH" }})
	makeTopic(t, b)
	sent := 0
	for round := range 6 {
		for range 20 {
			publish(t, b, fmt.Sprintf("m%d", sent), "")
			sent++
		}
		b = b.PowerCut(uint64(round))
		seen := bodies(b)
		for i := range sent {
			if n := seen[fmt.Sprintf("m%d", i)]; n != 1 {
				t.Fatalf("after cut %d: m%d is there %d times", round, i, n)
			}
		}
	}
}

// TestLostDerivedFiles is R094: without queues, index, checkpoint or exports the broker
// starts and has everything.
func TestLostDerivedFiles(t *testing.T) {
	for _, lost := range []string{"consumequeue", "index", "checkpoint", "queues.snapshot", "config"} {
		t.Run(lost, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			b := brokertest.Open(t, brokertest.Options{FS: fs})
			makeTopic(t, b)
			for i := range 30 {
				publish(t, b, fmt.Sprintf("m%d", i), "")
			}
			b.Stop()
			if err := fs.RemoveAll(fs.PathJoin("data", lost)); err != nil {
				t.Fatal(err)
			}
			b = brokertest.Open(t, brokertest.Options{FS: fs})
			if seen := bodies(b); len(seen) != 30 {
				t.Errorf("%d of 30 messages", len(seen))
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	sc := config.DefaultStore()
	sc.MessageDelayLevel = "1s soon"
	fs := vfs.NewMem()
	open := func() error {
		_, err := broker.Open(broker.Options{FS: fs, Dir: "data", Broker: config.NewLive(config.DefaultBroker()), StoreConfig: config.NewLive(sc), StoreHost: brokertest.Host})
		return err
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "soon") {
		t.Errorf("delay levels: %v", err)
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "soon") {
		t.Errorf("the first failure left something open: %v", err)
	}
}
