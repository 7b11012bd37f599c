package txn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// half is one half message as its producer knows it.
type half struct {
	body        string
	offset, log int64
	first       txn.Outcome // what was decided first and answered; Undecided
	maybe       txn.Outcome // what was asked for and not answered
}

func makeTopic(t testing.TB, b *brokertest.Broker, name string) {
	t.Helper()
	cfg := topic.New(name)
	cfg.ReadQueues, cfg.WriteQueues = 1, 1
	if err := b.Topics.Put(cfg); err != nil {
		t.Fatal(err)
	}
}

func sendHalf(b *brokertest.Broker, body, group, more string) (*half, error) {
	type result struct {
		at  storage.Placed
		err error
	}
	done := make(chan result, 1)
	b.Publish.Publish(&message.Message{Topic: "T", Body: []byte(body), BornTimestamp: 1, BornHost: brokertest.Host, SysFlag: message.SysTransactionPrepared,
		Properties: message.Properties("UNIQ_KEY\x01" + body + "\x02TRAN_MSG\x01true\x02PGROUP\x01" + group + "\x02" + more)},
		func(at storage.Placed, err error) { done <- result{at, err} })
	r := <-done
	return &half{body: body, offset: r.at.QueueOffset, log: r.at.PhysicalOffset, first: txn.Undecided}, r.err
}

func decide(b *brokertest.Broker, h *half, commit bool) error {
	done := make(chan error, 1)
	b.Txn.End(txn.Decision{Commit: commit, QueueOffset: h.offset, LogOffset: h.log, Group: "p", UniqueID: h.body}, func(err error) { done <- err })
	return <-done
}

// seen are the bodies of topic T.
func seen(t testing.TB, b *brokertest.Broker) (bodies []string) {
	t.Helper()
	b.Dispatched()
	for at := int64(0); at < b.Store.MaxOffset("T", 0); {
		r := b.Store.Read(storage.ReadRequest{Topic: "T", Offset: at, MaxMessages: 32})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, string(m.Body))
		}
		at = r.Next
		r.Release()
	}
	slices.Sort(bodies)
	return bodies
}

// model is what the broker should do.
type model struct {
	t        testing.TB
	b        *brokertest.Broker
	clock    *clock.Clock
	rng      *rand.Rand
	producer *brokertest.Producer
	halves   []*half
	history  []string
}

func (m *model) step() {
	what := m.rng.IntN(100)
	pick := func() *half {
		if len(m.halves) == 0 {
			return nil
		}
		return m.halves[m.rng.IntN(len(m.halves))]
	}
	h := pick()
	switch {
	case what < 35 || h == nil:
		m.say("half")
		h, err := sendHalf(m.b, fmt.Sprintf("%04d", len(m.halves)), "p", "")
		if err != nil {
			m.fail("half message: %v", err)
		}
		m.halves = append(m.halves, h)
	case what < 75:
		commit := what < 60
		m.say("decide %s commit=%v", h.body, commit)
		err := decide(m.b, h, commit)
		m.checks() // before h.first is told: a question may have been on its way already
		to := txn.RolledBack
		if commit {
			to = txn.Committed
		}
		switch {
		case h.first == txn.Undecided || h.first == txn.GivenUp || h.first == to:
			if err != nil {
				m.fail("decision %v of a half message that is %v: %v", to, h.first, err)
			}
			h.first = to
		case !errors.Is(err, txn.ErrDecided):
			m.fail("decision %v of a half message that is %v: %v", to, h.first, err)
		}
	case what < 88:
		by := time.Duration(m.rng.IntN(60)) * time.Second
		m.say("advance %v", by)
		m.clock.Advance(by)
	case what < 91:
		by := time.Duration(m.rng.IntN(120)-60) * time.Second
		m.say("clock step %v", by)
		m.clock.Step(by)
	case what < 95:
		m.say("restart")
		m.b.Dispatched()
		m.b = m.b.Restart()
		m.b.Produce(m.producer, "p")
	case what < 98:
		m.say("power cut")
		m.b = m.b.PowerCut(m.rng.Uint64())
		m.producer = &brokertest.Producer{Name: "a"} // what the dead one asks nobody hears
		m.b.Produce(m.producer, "p")
	default:
		m.say("kill")
		m.b = m.b.Kill()
		m.producer = &brokertest.Producer{Name: "a"}
		m.b.Produce(m.producer, "p")
	}
}

// checks compares what was asked: never about what is decided, and never more often than the
// maximum allows for what is still open. A crash may forget up to one checkpoint's checks.
// The broker asks on its own goroutine, so it is waited for.
func (m *model) checks() {
	m.clock.Advance(0)
	for _, c := range m.producer.Asked() {
		i := slices.IndexFunc(m.halves, func(h *half) bool { return h.offset == c.QueueOffset })
		if i < 0 || m.halves[i].body != c.UniqueID {
			m.fail("asked about %d, %s", c.QueueOffset, c.UniqueID)
		}
		if h := m.halves[i]; h.first != txn.Undecided {
			m.fail("asked about %s, which is %v", h.body, h.first)
		}
	}
}

// compare looks at all that can be seen.
func (m *model) compare() {
	m.b.Dispatched()
	m.checks()
	given := make(map[string]bool)
	for at := int64(0); at < m.b.Store.MaxOffset(names.TransCheckMaxTime, 0); {
		r := m.b.Store.Read(storage.ReadRequest{Topic: names.TransCheckMaxTime, Offset: at, MaxMessages: 32})
		for _, rec := range r.Records {
			p, _ := message.PropertiesOf(rec.Bytes)
			if id := strings.Clone(p.Value(message.PropertyUniqKey)); given[id] {
				m.fail("%s was given up twice", id)
			} else {
				given[id] = true
			}
		}
		at = r.Next
		r.Release()
	}
	var visible, open []string
	for _, h := range m.halves {
		if h.first == txn.Undecided && given[h.body] {
			h.first = txn.GivenUp
		}
		switch h.first {
		case txn.Committed:
			visible = append(visible, h.body)
		case txn.Undecided:
			open = append(open, h.body)
		}
	}
	if got := seen(m.t, m.b); !slices.Equal(got, visible) {
		m.fail("seen: %v, want %v", got, visible)
	}
	list, total := m.b.Txn.List("", "", 1<<20)
	var got []string
	for _, u := range list {
		got = append(got, u.UniqueID)
	}
	if !slices.Equal(got, open) || total != len(open) {
		m.fail("open: %v (%d), want %v", got, total, open)
	}
}

func (m *model) say(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(m.history, "\n"))
}

// TestRandomHistories compares the broker with what it should do: under synchronous flush, so
// that a power cut takes nothing that was answered.
func TestRandomHistories(t *testing.T) {
	rounds, steps := 8, 120
	if testing.Short() {
		rounds = 2
	}
	for seed := range rounds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := clock.New()
			m := &model{t: t, clock: c, rng: rand.New(rand.NewPCG(uint64(seed), 7)), producer: &brokertest.Producer{Name: "a"}}
			m.b = brokertest.Open(t, brokertest.Options{Clock: c, Tune: func(b *config.Broker, s *config.Store) {
				s.FlushDiskType = "SYNC_FLUSH"
				b.TransactionCheckMax = 4
			}})
			makeTopic(t, m.b, "T")
			m.b.Produce(m.producer, "p")
			for range steps {
				m.step()
				m.compare()
			}
		})
	}
}

// TestPowerCutAtAnyMoment cuts the power while half messages are sent and decided: what was
// answered holds, what was not is done wholly or not at all, and nothing is there twice.
func TestPowerCutAtAnyMoment(t *testing.T) {
	b := brokertest.Open(t, brokertest.Options{Tune: func(_ *config.Broker, s *config.Store) { s.FlushDiskType = "SYNC_FLUSH" }})
	makeTopic(t, b, "T")
	var mu sync.Mutex
	var halves []*half
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Add(1)
		go func() {
			defer senders.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				h, err := sendHalf(b, fmt.Sprintf("%d-%04d", s, i), "p", "")
				if err != nil {
					t.Error(err)
					return
				}
				commit := i%3 != 0
				mu.Lock()
				halves = append(halves, h)
				if h.maybe = txn.RolledBack; commit {
					h.maybe = txn.Committed
				}
				mu.Unlock()
				if i%7 == 0 {
					continue // stays open
				}
				if err := decide(b, h, commit); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				h.first = h.maybe
				mu.Unlock()
			}
		}()
	}
	defer func() {
		close(stop)
		senders.Wait()
	}()
	cuts := 12
	if testing.Short() {
		cuts = 3
	}
	for cut := range cuts {
		want := 30 * (cut + 1)
		brokertest.Until(t, "half messages", func() bool { mu.Lock(); defer mu.Unlock(); return len(halves) >= want })
		mu.Lock()
		var before []half
		for _, h := range halves {
			before = append(before, *h)
		}
		mu.Unlock()
		after := b.PowerCut(uint64(cut))
		count := make(map[string]int)
		for _, body := range seen(t, after) {
			count[body]++
		}
		for i := range before {
			h := &before[i]
			switch n := count[h.body]; {
			case n > 1:
				t.Fatalf("cut %d: %s is there %d times", cut, h.body, n)
			case h.first == txn.Committed && n != 1, h.first == txn.RolledBack && n != 0, h.maybe == txn.RolledBack && n != 0:
				t.Fatalf("cut %d: %s, answered %v, is there %d times", cut, h.body, h.first, n)
			}
			if h.first == txn.Undecided {
				continue // it may have been decided in the moment of the cut
			}
			if err := decide(after, h, h.first == txn.Committed); err != nil {
				t.Fatalf("cut %d: the same decision of %s again: %v", cut, h.body, err)
			}
			if err := decide(after, h, h.first != txn.Committed); !errors.Is(err, txn.ErrDecided) {
				t.Fatalf("cut %d: the other decision of %s: %v", cut, h.body, err)
			}
		}
		after.Stop()
	}
}
