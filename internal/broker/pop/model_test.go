package pop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// TestModel compares random histories with a small model of POP: one group, one topic of
// two queues, commits that happen at once, so that even a power cut loses nothing that was
// delivered. Between a copy's append and its dispatch there may be a crash, and dispatch
// may be replayed.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// A bubble, so that time stands still between the steps. rapid ends a history with
		// a panic, which has to leave the bubble first.
		var ended any
		synctest.Test(t, func(t *testing.T) {
			defer func() { ended = recover() }()
			m := newModel(t, rt)
			defer func() { m.b.close() }()
			m.history()
		})
		if ended != nil {
			panic(ended)
		}
	})
}

func (m *model) history() {
	m.rt.Repeat(map[string]func(*rapid.T){
		"send":     m.send,
		"pop":      m.pop,
		"ack":      m.ack,
		"ackBatch": m.ackBatch,
		"change":   m.change,
		"advance":  m.advance,
		"dispatch": m.dispatch,
		"fail":     m.fail,
		"crash":    m.crash,
		"":         m.check,
	})
	m.drain()
}

// place is where a message is: it has one at a time, and a new one when it is copied.
type place struct {
	topic  string
	queue  int32
	offset int64
}

type placeState int

const (
	visible placeState = iota
	inFlight
	claimed // its copy is awaited
	done
	gone // moved to a copy
)

type modelPlace struct {
	id      string
	state   placeState
	popTime int64
	due     int64
	suspend bool
}

type modelHandle struct {
	at     place
	handle receipt.Handle
	era    int // restarts before it
}

// model is what POP should do, in as few words as possible.
type model struct {
	rt      *rapid.T
	b       *testBroker
	places  map[place]*modelPlace
	handles []modelHandle
	final   map[string]bool // answered with OK
	sent    int
	era     int
	failing bool
}

func newModel(t *testing.T, rt *rapid.T) *model {
	m := &model{rt: rt, b: newTestBroker(t, true), places: map[place]*modelPlace{}, final: map[string]bool{}}
	m.b.tweak = func(o *Options) { o.LongPoll = nil }
	m.b.open(false)
	m.stopAlarm()
	m.b.topic("t", "", 2)
	g, err := m.b.groups.GetOrCreate("g")
	m.b.fatal(err)
	g = g.Clone()
	g.RetryMaxTimes = 1 << 20
	m.b.fatal(m.b.groups.Put(g))
	m.b.store.hold = true
	return m
}

// stopAlarm takes the revive loop's alarm out of the clock: the model revives itself.
func (m *model) stopAlarm() { m.b.pop.alarm.Stop() }

func (m *model) now() int64 { return m.b.pop.now() }

// learn takes up the places of records that were appended since.
func (m *model) learn() {
	s := m.b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, q := range s.queues {
		for off, rec := range q.recs {
			at := place{name.Topic, name.QueueID, int64(off)}
			if m.places[at] != nil {
				continue
			}
			var msg message.Message
			if _, err := message.DecodeStored(rec, &msg); err != nil {
				m.rt.Fatal(err)
			}
			m.places[at] = &modelPlace{id: string(msg.Body)}
		}
	}
}

func (m *model) send(rt *rapid.T) {
	n := rapid.IntRange(1, 5).Draw(rt, "n")
	for range n {
		m.sent++
		m.b.send("t", rapid.Int32Range(0, 1).Draw(rt, "queue"), fmt.Sprint("m", m.sent), "", "")
	}
	m.learn()
}

// dispatch makes what was appended visible; the sources of copies end with it.
func (m *model) dispatch(*rapid.T) {
	m.ended(m.b.store.held)
	m.b.store.dispatchHeld()
	m.learn()
}

func (m *model) ended(ds []storage.Dispatched) {
	for _, d := range ds {
		if k, off, popTime, ok := parseSource(d.Source); ok {
			p := m.places[place{k.topic, k.queue, off}]
			if p.state == claimed && p.popTime == popTime {
				p.state = gone
			}
		}
	}
}

func (m *model) pop(rt *rapid.T) {
	r := Request{
		Group: "g", Topic: "t", QueueID: rapid.Int32Range(-1, 1).Draw(rt, "queue"), Max: rapid.IntRange(1, 8).Draw(rt, "max"),
		Invisible: int64(rapid.SampledFrom([]int{10, 50, 1000}).Draw(rt, "invisible")),
	}
	m.b.pop.Pop(r, func(res Result, err error) { m.took(res, err) })
}

func (m *model) took(res Result, err error) {
	if err != nil {
		m.rt.Fatal(err)
	}
	topics := []string{"t", "%RETRY%g_t"}
	for i := range res.Batches {
		b := &res.Batches[i]
		for j := range b.Records {
			h := res.Handle(b, &b.Records[j], "b")
			at := place{topics[b.RetryFlag], b.QueueID, h.Offset}
			p := m.places[at]
			switch {
			case p == nil:
				m.rt.Fatalf("%v was delivered and never sent", at)
			case m.final[p.id]:
				m.rt.Fatalf("%s came back at %v after its OK", p.id, at)
			case p.state != visible:
				m.rt.Fatalf("%s at %v was delivered in state %d", p.id, at, p.state)
			case h.PopTime <= p.popTime:
				m.rt.Fatalf("%v was delivered at %d and then at %d", at, p.popTime, h.PopTime)
			}
			p.state, p.popTime, p.due = inFlight, h.PopTime, h.PopTime+h.InvisibleTime
			m.handles = append(m.handles, modelHandle{at, h, m.era})
		}
	}
	res.Release()
}

// pick chooses one of all receipts ever given, recent ones more often.
func (m *model) pick(rt *rapid.T) (modelHandle, bool) {
	n := len(m.handles)
	if n == 0 {
		return modelHandle{}, false
	}
	back := rapid.IntRange(0, min(n-1, 12)).Draw(rt, "handle")
	return m.handles[n-1-back], true
}

// verdicts is what an ack of h may be answered.
func (m *model) verdicts(h modelHandle) []error {
	p, now := m.places[h.at], m.now()
	t := h.handle.PopTime
	switch p.state {
	case inFlight:
		switch {
		case t < p.popTime:
			return []error{ErrStale}
		case p.due <= now:
			return []error{ErrExpired}
		}
		return []error{nil}
	case done:
		if h.era == m.era && t == p.popTime && h.handle.Due() > now {
			return []error{nil}
		}
		return []error{nil, ErrExpired}
	case claimed:
		if t < p.popTime {
			return []error{ErrStale}
		}
		return []error{ErrExpired}
	}
	return []error{ErrExpired, ErrStale}
}

func (m *model) acked(h modelHandle, err error, allowed []error) {
	if !slices.Contains(allowed, err) {
		m.rt.Fatalf("ack of %v popped at %d: %v, want one of %v (state %+v, now %d)", h.at, h.handle.PopTime, err, allowed, m.places[h.at], m.now())
	}
	if p := m.places[h.at]; err == nil {
		p.state = done
		m.final[p.id] = true
	}
}

func (m *model) ack(rt *rapid.T) {
	h, ok := m.pick(rt)
	if !ok {
		return
	}
	allowed := m.verdicts(h)
	m.b.pop.Ack("g", "t", h.handle, func(err error) { m.acked(h, err, allowed) })
}

func (m *model) ackBatch(rt *rapid.T) {
	var hs []modelHandle
	var handles []receipt.Handle
	seen := map[place]bool{}
	for range rapid.IntRange(1, 5).Draw(rt, "n") {
		if h, ok := m.pick(rt); ok && !seen[h.at] {
			seen[h.at] = true
			hs, handles = append(hs, h), append(handles, h.handle)
		}
	}
	var allowed [][]error
	for _, h := range hs {
		allowed = append(allowed, m.verdicts(h))
	}
	m.b.pop.AckBatch("g", "t", handles, func(errs []error) {
		for i, err := range errs {
			m.acked(hs[i], err, allowed[i])
		}
	})
}

func (m *model) change(rt *rapid.T) {
	h, ok := m.pick(rt)
	if !ok {
		return
	}
	allowed := m.verdicts(h)
	p := m.places[h.at]
	if p.state == done {
		allowed = []error{ErrExpired}
	}
	invisible := int64(rapid.SampledFrom([]int{0, 5, 40, 500}).Draw(rt, "to"))
	suspend := rapid.Bool().Draw(rt, "suspend")
	m.b.pop.ChangeInvisible("g", "t", h.handle, invisible, suspend, func(n receipt.Handle, err error) {
		if !slices.Contains(allowed, err) {
			m.rt.Fatalf("change of %v popped at %d: %v, want one of %v (state %+v, now %d)", h.at, h.handle.PopTime, err, allowed, p, m.now())
		}
		if err != nil {
			return
		}
		if n.PopTime <= p.popTime {
			m.rt.Fatalf("change of %v gave the name %d after %d", h.at, n.PopTime, p.popTime)
		}
		p.popTime, p.due, p.suspend = n.PopTime, n.PopTime+n.InvisibleTime, suspend
		m.handles = append(m.handles, modelHandle{h.at, n, m.era})
	})
}

func (m *model) advance(rt *rapid.T) {
	m.b.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 7, 60, 1200, 30_000}).Draw(rt, "ms")) * time.Millisecond)
	if rapid.Bool().Draw(rt, "revive") {
		m.revive()
	}
}

// revive runs what the loop would run now.
func (m *model) revive() {
	now := m.now()
	for _, p := range m.places {
		if p.state == inFlight && p.due <= now {
			p.state = claimed
			if p.suspend {
				p.state, p.suspend = visible, false
			}
		}
	}
	for m.b.pop.reviveDue() {
	}
	m.learn()
}

func (m *model) fail(rt *rapid.T) {
	m.failing = !m.failing
	m.b.store.mu.Lock()
	defer m.b.store.mu.Unlock()
	delete(m.b.store.failTopics, "%RETRY%g_t")
	if m.failing {
		m.b.store.failTopics["%RETRY%g_t"] = storage.ErrDiskFull
	}
}

// crash kills the process. The store dispatches again what it is not sure of.
func (m *model) crash(rt *rapid.T) {
	unsynced := rapid.IntRange(0, 100).Draw(rt, "unsynced")
	seed := rapid.Uint64().Draw(rt, "seed")
	held := m.b.store.held
	replay := append(slices.Clone(m.b.store.recent), held...)
	m.b.crash(unsynced, rand.New(rand.NewPCG(seed, 1)), false)
	m.stopAlarm()
	m.ended(held)
	m.b.store.mu.Lock()
	m.b.store.held = nil
	m.b.store.mu.Unlock()
	for _, d := range replay {
		m.b.store.dispatch(d)
	}
	m.era++
	// A restart in the very millisecond of the last delivery begins a second later.
	if behind := m.now() - m.b.clock.NowMilli(); behind > 0 {
		m.b.clock.Advance(time.Duration(behind) * time.Millisecond)
	}
}

// check compares the windows with the model (P1, P3, P5).
func (m *model) check(*rapid.T) {
	flying, next := map[place]int64{}, map[place]int64{}
	aside := map[place]bool{}
	for _, v := range m.b.pop.Dump(nil) {
		q := place{v.Topic, v.QueueID, 0}
		next[q] = v.Next
		for _, f := range v.InFlight {
			for _, off := range f.Offsets {
				at := place{v.Topic, v.QueueID, off}
				if _, twice := flying[at]; twice {
					m.rt.Fatalf("%v is in flight twice", at)
				}
				flying[at] = f.PopTime
			}
		}
		for _, off := range v.Aside {
			aside[place{v.Topic, v.QueueID, off}] = true
		}
	}
	for at, p := range m.places {
		popTime, flies := flying[at]
		below := at.offset < next[place{at.topic, at.queue, 0}]
		got := fmt.Sprintf("flies=%v aside=%v below=%v", flies, aside[at], below)
		var want []string
		switch p.state {
		case visible:
			want = []string{"flies=false aside=false below=false", "flies=false aside=true below=true"}
		case inFlight, claimed:
			want = []string{"flies=true aside=false below=true"}
			if flies && popTime != p.popTime {
				m.rt.Fatalf("%v flies under %d, want %d", at, popTime, p.popTime)
			}
		default:
			want = []string{"flies=false aside=false below=true"}
		}
		if !slices.Contains(want, got) {
			m.rt.Fatalf("%s at %v in state %d: %s, want %s", p.id, at, p.state, got, strings.Join(want, " or "))
		}
	}
}

// drain consumes everything: nothing may be lost.
func (m *model) drain() {
	if m.failing {
		m.fail(m.rt)
	}
	for range 200 {
		m.b.clock.Advance(3 * time.Hour)
		m.revive()
		m.dispatch(m.rt)
		m.b.pop.Pop(Request{Group: "g", Topic: "t", QueueID: -1, Max: 32, Invisible: 1000}, func(res Result, err error) {
			first := len(m.handles)
			m.took(res, err)
			for _, h := range m.handles[first:] {
				m.b.pop.Ack("g", "t", h.handle, func(err error) { m.acked(h, err, []error{nil}) })
			}
		})
		if len(m.final) == m.sent {
			return
		}
	}
	m.rt.Fatalf("%d of %d messages were never delivered", m.sent-len(m.final), m.sent)
}
