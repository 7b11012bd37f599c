package timer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func send(t *testing.T, b *brokertest.Broker, name, body, properties string) {
	t.Helper()
	sent := make(chan error, 1)
	b.Publish.Publish(&message.Message{Topic: name, Body: []byte(body), BornTimestamp: 1, BornHost: brokertest.Host,
		Properties: message.Properties("UNIQ_KEY\x01" + body[:min(8, len(body))] + "\x02" + properties)},
		func(_ storage.Placed, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func bodies(t *testing.T, b *brokertest.Broker, name string) (got []string) {
	t.Helper()
	for at := int64(0); at < b.Store.MaxOffset(name, 0); {
		r := b.Store.Read(storage.ReadRequest{Topic: name, Offset: at, MaxMessages: 32})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			got = append(got, string(m.Body))
		}
		at = r.Next
		r.Release()
	}
	return got
}

// The log files that delayed messages are in go before their time has come: they are
// delivered all the same, once, in order, across restarts, and leave nothing behind.
func TestDelayedMessagesOutliveTheirLogFile(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c, Tune: func(_ *config.Broker, s *config.Store) { s.FileReservedTime = 1 }})
	for _, name := range []string{"orders", "filler"} {
		cfg := topic.New(name)
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range 600 { // more than are read at once
		body := fmt.Sprintf("late-%03d", i)
		want = append(want, body)
		send(t, b, "orders", body, "DELAY\x0118\x02")
		if i%30 == 0 {
			send(t, b, "filler", strings.Repeat("x", 20_000), "")
		}
	}
	fill := func() {
		for range 120 { // more than two log files
			send(t, b, "filler", strings.Repeat("x", 20_000), "")
		}
		b.Dispatched()
	}
	fill()
	c.Advance(90 * time.Minute)
	fill()
	var min int64
	brokertest.Until(t, "the log files to go", func() bool { // not before a checkpoint
		if err := b.Store.DeleteExpired(); err != nil {
			t.Fatal(err)
		}
		min = b.Store.LogMin()
		return min >= 1<<20
	})
	if got := bodies(t, b, "orders"); len(got) != 0 {
		t.Fatalf("delivered too early: %v", got)
	}
	waits := func(want int64) {
		t.Helper()
		if got, err := b.Timer.Waiting(); err != nil || got["orders"] != want || len(got) > 1 {
			t.Errorf("%v wait, %v, want %d", got, err, want)
		}
	}
	waits(int64(len(want))) // counted when their records have gone
	b = b.Restart()
	b = b.Kill()
	send(t, b, "orders", "later", "DELAY\x011\x02")
	b.Dispatched()
	waits(int64(len(want)) + 1)
	c.Advance(time.Second)
	brokertest.Until(t, "delivery of the last", func() bool { b.Dispatched(); return b.Store.MaxOffset("orders", 0) == 1 })
	waits(int64(len(want)))
	want = append([]string{"later"}, want...)
	if b.Store.LogMin() < min {
		t.Fatal("the log is longer than it was")
	}
	c.Advance(31 * time.Minute)
	brokertest.Until(t, "delivery", func() bool { b.Dispatched(); return b.Store.MaxOffset("orders", 0) >= int64(len(want)) })
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered %v", got)
	}
	b = b.Restart()
	c.Advance(3 * time.Hour)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered again: %v", got)
	}
	if kept := b.Timer.Kept(); kept != 0 {
		t.Errorf("%d messages are still kept", kept)
	}
}
