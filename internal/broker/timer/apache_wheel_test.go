package timer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// What is written for Apache's server at a stop is read as if it had written it: the same
// messages wait, those that were taken back or delivered do not.
func TestApachesFilesSayWhatWaits(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c, NearTimers: 16, Tune: func(_ *config.Broker, s *config.Store) { s.TimerMaxDelaySec = 1e9 }})
	for _, name := range []string{"orders", "rest"} {
		cfg := topic.New(name)
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	now := c.NowMilli()
	soon := now + time.Hour.Milliseconds() // this test ends before then on any machine
	for i := range 150 {                   // several files of units, several of one second
		body := fmt.Sprintf("late%04d", i)
		want = append(want, body)
		send(t, b, "orders", body, fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", soon+int64(i*100)))
	}
	for i, days := range []int{1, 3, 5, 300} {
		body := fmt.Sprintf("days%04d", i)
		want = append(want, body)
		send(t, b, "orders", body, fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", now+int64(days)*24*3600*1000))
	}
	send(t, b, "orders", "recalled", fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", soon+30_000))
	send(t, b, "rest", "passed", fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", now+2000))
	c.Advance(10 * time.Second)
	b.Dispatched()
	recalled := make(chan error, 1)
	b.Wheel.Recall("orders", message.RecallHandle{Topic: "orders", Broker: b.Name, Due: soon + 30_000, UniqKey: "recalled"}.String(), "",
		func(_ string, err error) { recalled <- err })
	if err := <-recalled; err != nil {
		t.Fatal(err)
	}
	b.Dispatched()
	for range 2 {
		// Without the sums the files are another server's.
		batch := b.State.NewBatch()
		batch.DeletePrefix(state.Wheel, []byte("s"))
		if err := b.State.Commit(batch); err != nil {
			t.Fatal(err)
		}
		b = b.Restart()
		batch = b.State.NewBatch()
		batch.DeletePrefix(state.Wheel, []byte("s"))
		if err := b.State.Commit(batch); err != nil {
			t.Fatal(err)
		}
		b = b.Kill()
		if got := b.Wheel.Counts(); len(got) != 1 || got["orders"] != int64(len(want)) {
			t.Fatalf("%v wait, want %d", got, len(want))
		}
	}
	later(c, time.Hour+time.Minute)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want[:150]) {
		t.Fatalf("delivered %v", got)
	}
	b = b.Restart()
	later(c, 301*24*time.Hour)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered %v", got)
	}
	if got := bodies(t, b, "rest"); len(got) != 1 {
		t.Fatalf("delivered %v", got)
	}
}
