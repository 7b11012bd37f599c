package metrics

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// traced is a broker and what its page says of one group.
type traced struct {
	*brokertest.Broker
	t     *testing.T
	clock *clock.Clock
}

func newTraced(t *testing.T) *traced {
	c := clock.New()
	b := &traced{Broker: brokertest.Open(t, brokertest.Options{Clock: c}), t: t, clock: c}
	for _, cfg := range []*topic.Config{
		{Name: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6},
		{Name: "F", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "FIFO"}},
	} {
		b.must(b.Topics.Put(cfg))
	}
	cfg := group.New("g")
	cfg.RetryMaxTimes = 1
	b.must(b.Groups.Put(cfg))
	return b
}

func (b *traced) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *traced) send(name string, queue int32, props message.Properties) {
	b.t.Helper()
	sent := make(chan error, 1)
	b.Publish.Publish(&message.Message{Topic: name, QueueID: queue, Body: []byte("x"), BornTimestamp: 1, BornHost: brokertest.Host, Properties: props},
		func(_ storage.Placed, err error) { sent <- err })
	b.must(<-sent)
	b.Dispatched()
}

// pop returns the receipts of up to n messages of one topic for group g, for ten seconds.
func (b *traced) pop(name string, n int) (got []receipt.Handle) {
	b.t.Helper()
	answered := make(chan error, 1)
	b.Pop.Pop(pop.Request{Group: "g", Topic: name, QueueID: -1, Max: n, Invisible: 10_000, OnePerGroup: name == "F"}, func(r pop.Result, err error) {
		for _, batch := range r.Batches {
			for _, rec := range batch.Records {
				got = append(got, receipt.Handle{StartOffset: rec.QueueOffset, Offset: rec.QueueOffset, QueueID: batch.QueueID, RetryFlag: batch.RetryFlag,
					PopTime: r.PopTime, InvisibleTime: r.Invisible, LogOffset: -1})
			}
		}
		r.Release()
		answered <- err
	})
	b.must(<-answered)
	if len(got) != n {
		b.t.Fatalf("got %d messages of %d", len(got), n)
	}
	return got
}

func (b *traced) ack(name string, h receipt.Handle) {
	b.t.Helper()
	done := make(chan error, 1)
	b.Pop.Ack("g", name, h, func(err error) { done <- err })
	b.must(<-done)
}

// says holds that the page says: lag, in flight, ready, blocked, delayed. Copies of lapsed
// messages come by themselves, so it waits for them.
func (b *traced) says(name, retry string, want ...int64) {
	b.t.Helper()
	var got [5]int64
	defer func() {
		if b.t.Failed() {
			b.t.Logf("%s, retry %s: lag, in flight, ready, blocked, delayed are %d, want %d", name, retry, got, want)
		}
	}()
	brokertest.Until(b.t, "the figures", func() bool {
		of := b.page()
		for i, family := range []string{"rocketmq_consumer_lag_messages", "rocketmq_consumer_inflight_messages", "rocketmq_consumer_ready_messages",
			"bolide_consumer_blocked_messages", "bolide_consumer_delayed_messages"} {
			value, there := of[family+`{consumer_group="g",topic="`+name+`",is_retry="`+retry+`",is_system="false"}`]
			if got[i] = value; !there {
				b.t.Fatalf("no %s of %s, retry %s", family, name, retry)
			}
		}
		return got == [5]int64(want)
	})
}

// page is the page without the labels that all have.
func (b *traced) page() map[string]int64 {
	b.t.Helper()
	text, err := Page(b.Broker.Broker)
	b.must(err)
	of := make(map[string]int64)
	common := `cluster="` + b.Cluster + `",node_type="broker",node_id="` + b.Name + `",`
	for key, n := range samples(b.t, text) {
		of[strings.Replace(key, common, "", 1)] = n
	}
	return of
}

// samples reads a page: a number by its name and labels.
func samples(t *testing.T, page []byte) map[string]int64 {
	t.Helper()
	of := make(map[string]int64)
	for line := range strings.Lines(string(page)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && line[0] != '#' {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			of[key+"}"] = n
		}
	}
	return of
}

// Every message of a group is in one of the figures from its sending to its end: acks out of
// order count at once, a lapse moves it to the retries, the last one to the dead letters.
func TestFiguresOfPOP(t *testing.T) {
	b := newTraced(t)
	for i := range 6 {
		b.send("T", int32(i%2), "")
	}
	got := b.pop("T", 3)
	b.says("T", "false", 6, 3, 3, 0, 0)
	b.says("T", "true", 0, 0, 0, 0, 0)
	b.ack("T", got[1]) // not the lowest
	b.says("T", "false", 5, 2, 3, 0, 0)

	b.clock.Advance(11 * time.Second)
	b.says("T", "false", 3, 0, 3, 0, 0)
	b.says("T", "true", 2, 0, 2, 0, 0)
	if oldest := b.page()[`rocketmq_consumer_queueing_latency{consumer_group="g",topic="T",is_retry="false",is_system="false"}`]; oldest < 11_000 {
		t.Errorf("the oldest message is %d ms old", oldest)
	}
	for range 5 {
		if h := b.pop("T", 1)[0]; h.RetryFlag == receipt.FlagNormal {
			b.ack("T", h)
		}
	}
	b.says("T", "false", 0, 0, 0, 0, 0)
	b.says("T", "true", 2, 2, 0, 0, 0)
	const dead, letters = `rocketmq_send_to_dlq_messages_total{topic="T",consumer_group="g",is_system="false"}`, `bolide_dead_letters{consumer_group="g",is_system="false"}`
	if of := b.page(); of[dead] != 0 || of[letters] != 0 || of[`rocketmq_pop_revive_retry_messages_total{topic="T",consumer_group="g",is_system="false",put_status="PUT_OK"}`] != 2 {
		t.Errorf("before any died: %d, %d", of[dead], of[letters])
	} else if _, there := of[dead]; !there {
		t.Error("no zero of dead letters")
	}
	b.clock.Advance(11 * time.Second)
	b.says("T", "true", 0, 0, 0, 0, 0)
	if of := b.page(); of[dead] != 2 || of[letters] != 2 {
		t.Errorf("dead %d, in the dead-letter topic %d", of[dead], of[letters])
	}
	if oldest := b.page()[`rocketmq_consumer_lag_latency{consumer_group="g",topic="T",is_retry="true",is_system="false"}`]; oldest != 0 {
		t.Errorf("all is done, and the oldest message is %d ms old", oldest)
	}
}

// Messages that a group's filter passes over count until it has come to them.
func TestDiffFiguresWithAFilter(t *testing.T) {
	b := newTraced(t)
	for range 3 {
		b.send("T", 0, "TAGS\x01other\x02")
	}
	b.must(b.Offsets.Commit("g", "T", 0, 0))
	b.says("T", "false", 3, 0, 3, 0, 0)
	only, err := filter.Compile("TAG", "wanted")
	b.must(err)
	answered := make(chan error, 1)
	b.Pop.Pop(pop.Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 10_000, Filter: only}, func(r pop.Result, err error) {
		r.Release()
		answered <- err
	})
	b.must(<-answered)
	b.says("T", "false", 0, 0, 0, 0, 0)
}

// Messages behind one of their own group are blocked, and ready once it is done.
func TestFiguresOfFIFO(t *testing.T) {
	b := newTraced(t)
	for _, g := range []string{"a", "a", "a", "b"} {
		b.send("F", 0, message.Properties(message.PropertyShardingKey+"\x01"+g+"\x02"))
	}
	got := b.pop("F", 2)
	b.says("F", "false", 4, 2, 0, 2, 0)
	b.ack("F", got[0])
	b.says("F", "false", 3, 1, 2, 0, 0)
}

// What a group of a topic's classic consumers has given back waits for its level's time and
// is then ready, also across a restart.
func TestFiguresOfWhatWasGivenBack(t *testing.T) {
	b := newTraced(t)
	b.send("T", 0, "")
	given := make(chan error, 1)
	b.Publish.SendBack(publish.SendBack{Group: "g", DelayLevel: 3, MaxReconsume: -1}, func(err error) { given <- err })
	b.must(<-given)
	b.Dispatched()
	b.must(b.Offsets.Commit("g", "%RETRY%g", 0, 0))
	b.says("%RETRY%g", "true", 0, 0, 0, 0, 1)
	b.Broker = b.Restart()
	b.says("%RETRY%g", "true", 0, 0, 0, 0, 1)
	b.clock.Advance(10 * time.Second)
	b.says("%RETRY%g", "true", 1, 0, 1, 0, 0)
}

// A reset counts at once, not only when the group asks again: what was in flight is given up with it.
func TestFiguresOfReset(t *testing.T) {
	b := newTraced(t)
	for range 4 {
		b.send("T", 0, "")
	}
	got := b.pop("T", 3)
	b.ack("T", got[0])
	b.says("T", "false", 3, 2, 1, 0, 0)
	for _, c := range []struct{ to, lag int64 }{{0, 4}, {4, 0}, {1, 3}} {
		_, err := b.Admin.ResetOffset(admin.Reset{Group: "g", Topic: "T", QueueID: 0, Offset: c.to, HasOffset: true})
		b.must(err)
		b.says("T", "false", c.lag, 0, c.lag, 0, 0)
		if seen := b.Pop.Inspect("g", "T", 10)[0]; seen.Ready != c.lag || seen.InFlight != 0 || len(seen.Held) != 0 || seen.Lowest != c.to {
			t.Errorf("reset to %d: %+v", c.to, seen)
		}
	}
	b.pop("T", 3)
	b.says("T", "false", 3, 3, 0, 0, 0)
}
