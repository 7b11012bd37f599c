package timer_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// TestEveryWrite crashes a broker before each of the writes of a life in which timers and
// delayed messages go every way that there is: delivered, taken back, moved to the log's end
// and then delivered or taken back, kept without their log file, dropped with their topic
// (R076, R079, R080, R081).
func TestEveryWrite(t *testing.T) {
	brokertest.EveryWrite(t, brokertest.Options{NearTimers: 4}, func(l *brokertest.Life) brokertest.Course {
		return &timerCourse{Life: l, due: map[string]int64{}, stored: map[string]bool{}, back: map[string]bool{}, asked: map[string]bool{}}
	})
}

// timerCourse is what was sent for when, and what of it was promised.
type timerCourse struct {
	*brokertest.Life
	due                 map[string]int64
	handles             map[string]string
	stored, back, asked map[string]bool // answered for; taken back, answered for; to be taken back
}

func (c *timerCourse) Prepare(b *brokertest.Broker) {
	c.handles = make(map[string]string)
	for _, name := range []string{"T", "G"} {
		cfg := topic.New(name)
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *timerCourse) send(b *brokertest.Broker, topic, key, property string, after time.Duration) {
	c.due[key] = c.Clock.NowMilli() + after.Milliseconds()
	r := &publish.Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: topic, Body: []byte(key), BornTimestamp: 1, BornHost: brokertest.Host,
		Properties: message.Properties("UNIQ_KEY\x01" + key + "\x02" + property + "\x02")}}
	sent := make(chan error, 1)
	b.Publish.Send(r, func(_ storage.Placed, err error) { sent <- err })
	err := <-sent
	c.stored[key] = err == nil && !c.Over()
	if r.Due > 0 {
		c.handles[key] = message.RecallHandle{Topic: topic, Broker: b.Name, Due: r.Due, UniqKey: key}.String()
	}
}

func (c *timerCourse) timer(b *brokertest.Broker, topic, key string, after time.Duration) {
	c.send(b, topic, key, "TIMER_DELAY_MS\x01"+strconv.FormatInt(after.Milliseconds(), 10), after)
}

func (c *timerCourse) recall(b *brokertest.Broker, key string) {
	c.asked[key] = true
	got := make(chan error, 1)
	b.Wheel.Recall("T", c.handles[key], "", func(_ string, err error) { got <- err })
	if err := <-got; err == nil && !c.Over() {
		c.back[key] = true
	}
}

// Live goes on after the crash without being believed.
func (c *timerCourse) Live(b *brokertest.Broker) {
	for i, after := range []time.Duration{time.Second, time.Second, time.Second, time.Minute, time.Minute, time.Hour, time.Hour} {
		c.timer(b, "T", "t"+strconv.Itoa(i), after)
	}
	c.timer(b, "G", "g0", time.Minute)
	c.send(b, "T", "l0", "DELAY\x011", time.Second)
	c.send(b, "T", "l1", "DELAY\x015", time.Minute)
	c.recall(b, "t3")
	c.Clock.Advance(2 * time.Second)
	b.Dispatched()
	end := b.Store.LogEnd()
	if err := b.Wheel.Move(c.T.Context(), end); err != nil && !c.Over() {
		c.Errorf("move: %v", err)
	}
	if err := b.Timer.Keep(end); err != nil && !c.Over() {
		c.Errorf("keep: %v", err)
	}
	b.Dispatched()
	c.recall(b, "t5")

	if err := b.Topics.Delete("G"); err != nil {
		c.Error(err)
	}
	c.timer(b, "T", "t7", 3*time.Minute)
	c.Clock.Advance(time.Minute)
	b.Dispatched()
}

// Settle lets everything fall due and looks where each message went.
func (c *timerCourse) Settle(b *brokertest.Broker) {
	c.Clock.Advance(2 * time.Hour)
	b.Dispatched()
	b = b.Restart()
	defer b.Stop()
	c.Clock.Advance(2 * time.Hour)
	b.Dispatched()
	came := make(map[string]int)
	for at := int64(0); at < b.Store.MaxOffset("T", 0); {
		r := b.Store.Read(storage.ReadRequest{Topic: "T", Offset: at, MaxMessages: 32})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				c.Error(err)
			}
			key := string(m.Body)
			came[key]++
			if early := c.due[key] - m.StoreTimestamp; early > 0 {
				c.Errorf("%s came %d ms early", key, early)
			}
		}
		at = r.Next
		r.Release()
	}
	for key := range c.due {
		switch n := came[key]; {
		case n > 1:
			c.Errorf("%s came %d times", key, n)
		case c.back[key] && n > 0:
			c.Errorf("%s came, and was taken back", key)
		case c.stored[key] && !c.asked[key] && n == 0 && key != "g0":
			c.Errorf("%s was lost", key)
		}
	}
	if n := b.Wheel.Counts(); len(n) > 0 {
		c.Errorf("%v are said to wait", n)
	}
	if n, err := b.Timer.Waiting(); err != nil || len(n) > 0 {
		c.Errorf("%v are said to wait, %v", n, err)
	}
}
