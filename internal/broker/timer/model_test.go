package timer_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// model is what a timer server does, without a disk: what was sent, for when, and what was
// taken back before then.
type model struct {
	due      map[string]int64
	recalled map[string]bool
	handles  map[string]string
	keys     []string // of the handles, in the order of their sends
}

// history drives a broker and the model through the same random operations.
type history struct {
	t   *testing.T
	rng *rand.Rand
	b   *brokertest.Broker
	c   *clock.Clock
	m   model
}

func (h *history) send() {
	key := "k" + strconv.Itoa(len(h.m.due))
	due := h.c.NowMilli() + h.rng.Int64N(20_000)
	if h.rng.IntN(3) == 0 {
		due = due/1000*1000 + 1000 // many at one time
	}
	r := &publish.Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: "T", Body: []byte(key), BornTimestamp: 1, BornHost: brokertest.Host,
		Properties: message.Properties("UNIQ_KEY\x01" + key + "\x02TIMER_DELIVER_MS\x01" + strconv.FormatInt(due, 10) + "\x02")}}
	sent := make(chan error, 1)
	h.b.Publish.Send(r, func(_ storage.Placed, err error) { sent <- err })
	if err := <-sent; err != nil {
		h.t.Fatal(err)
	}
	h.m.due[key] = due
	if r.Due > 0 {
		h.m.keys = append(h.m.keys, key)
		h.m.handles[key] = message.RecallHandle{Topic: "T", Broker: h.b.Name, Due: due, UniqKey: key}.String()
	}
}

func (h *history) recall() {
	if len(h.m.keys) == 0 {
		return
	}
	key := h.m.keys[h.rng.IntN(len(h.m.keys))]
	got := make(chan error, 1)
	h.b.Wheel.Recall("T", h.m.handles[key], "", func(_ string, err error) { got <- err })
	err := <-got
	switch now := h.c.NowMilli(); {
	case err == nil:
		h.m.recalled[key] = true
	case h.m.recalled[key]:
		h.t.Fatalf("%s was recalled, and then: %v", key, err)
	case now < h.m.due[key]:
		h.t.Fatalf("%s could not be recalled, and is not due yet: %v", key, err)
	}
}

func (h *history) step() {
	switch n := h.rng.IntN(20); {
	case n < 12:
		h.send()
	case n < 14:
		h.recall()
	case n < 17:
		h.c.Advance(time.Duration(h.rng.IntN(3000)) * time.Millisecond)
	case n < 18:
		h.b = h.b.Restart()
	case n < 19:
		h.b.Dispatched()
		h.b = h.b.Kill()
	default:
		h.b = h.b.PowerCut(h.rng.Uint64())
	}
	h.compare(false)
}

// compare holds that what was delivered is what the model says; all of it at the end.
func (h *history) compare(end bool) {
	h.t.Helper()
	h.b.Dispatched()
	seen := make(map[string]bool)
	for at := int64(0); at < h.b.Store.MaxOffset("T", 0); {
		r := h.b.Store.Read(storage.ReadRequest{Topic: "T", Offset: at, MaxMessages: 32})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				h.t.Fatal(err)
			}
			key := string(m.Body)
			switch {
			case seen[key]:
				h.t.Fatalf("%s was delivered twice", key)
			case h.m.recalled[key]:
				h.t.Fatalf("%s was delivered although it was recalled", key)
			case m.StoreTimestamp < h.m.due[key]:
				h.t.Fatalf("%s was delivered %d ms early", key, h.m.due[key]-m.StoreTimestamp)
			}
			seen[string(m.Body)] = true
		}
		at = r.Next
		r.Release()
	}
	waiting := int64(len(h.m.due) - len(h.m.recalled) - len(seen))
	if got := h.b.Wheel.Counts()["T"]; end && (waiting != 0 || got != 0) {
		h.t.Fatalf("%d were never delivered, %d are said to wait", waiting, got)
	}
}

// historySeed replays a history that has failed: its number is the name of the subtest.
var historySeed = flag.Uint64("history", 0, "the only random history to run")

// Random histories with restarts, crashes and power cuts: nothing early, lost or repeated,
// and what was recalled stays so. It is R080 and a part of R076.
func TestRandomHistories(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	first := uint64(time.Now().UnixNano())
	if *historySeed != 0 {
		first, seeds = *historySeed, 1
	}
	for seed := first; seed < first+uint64(seeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := clock.New()
			h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 1)), c: c, m: model{due: map[string]int64{}, recalled: map[string]bool{}, handles: map[string]string{}}}
			h.b = brokertest.Open(t, brokertest.Options{Clock: c, NearTimers: 8, Tune: func(_ *config.Broker, s *config.Store) { s.FlushDiskType = "SYNC_FLUSH" }})
			cfg := topic.New("T")
			cfg.ReadQueues, cfg.WriteQueues = 1, 1
			if err := h.b.Topics.Put(cfg); err != nil {
				t.Fatal(err)
			}
			for range 120 {
				h.step()
			}
			c.Advance(time.Minute)
			h.compare(true)
			h.b = h.b.Restart()
			c.Advance(time.Minute)
			h.compare(true)
		})
	}
}
