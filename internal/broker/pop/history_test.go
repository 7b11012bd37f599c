package pop

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// TestModel compares random histories with the model of model_test.go: two groups whose v1
// retry topics have one name, each with several members; two plain topics and one that is
// ordered; pops with and without order and filter, acks one by one and in both batch forms,
// changes, hand-backs, dead letters on request, lapses, renewal; failing retry topics;
// topics and groups deleted and made anew; offsets reset; clocks that are set; clean
// restarts, and crashes before any write to the disk, during a recovery too.
//
// The committer runs in some histories, so that deliveries are lost in a crash; in the
// others every change is committed at once. Long runs:
//
//	go test ./internal/broker/pop -run TestModel -rapid.checks=20000 -rapid.steps=60
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
		// rapid tells ends apart by where they come from: one for lack of random bits, while a
		// failure is made smaller, must not look like the failure.
		switch {
		case ended == nil:
		case fmt.Sprintf("%T", ended) == "rapid.invalidData":
			panic(ended)
		default:
			panic(ended)
		}
	})
}

type model struct {
	rt        *rapid.T
	b         *testBroker
	committer bool // it runs: deliveries are committed later
	aside     int  // Options.SetAside
	topics    map[string]*modelTopic
	groups    map[string]*modelGroup
	order     []string // of groups
	places    map[place]*modelPlace
	touched   []*modelPlace
	handles   []given
	final     map[[2]string]place // group and message: where it was acknowledged with OK
	again     map[[2]string]bool  // it may come more than once: its group was made anew, or reset before its copy was consumed
	copies    map[string]int
	learned   int
	sent      int
	era       int
	attempts  int
	waited    bool     // this step waited for a commit
	doomed    []string // topics or a group whose deletion may have been cut off
	fell      []string // the same for a group
	trap      storetest.Trap
	caughtAt  int // appends of the store when the trap closed
	answers   []func()
}

// The names make both groups' v1 retry topics one: %RETRY%g_x_t.
var (
	modelTopics = []string{"t", "x_t", "f"}
	modelGroups = []string{"g", "g_x"}
)

func newModel(t *testing.T, rt *rapid.T) *model {
	m := &model{
		rt: rt, b: newTestBroker(t, rapid.Bool().Draw(rt, "sync")), order: modelGroups,
		topics: map[string]*modelTopic{}, groups: map[string]*modelGroup{}, places: map[place]*modelPlace{},
		final: map[[2]string]place{}, copies: map[string]int{}, again: map[[2]string]bool{},
	}
	m.committer = rapid.Bool().Draw(rt, "committer")
	m.aside = rapid.SampledFrom([]int{3, 10_000}).Draw(rt, "aside")
	m.b.tweak = func(o *Options) { o.LongPoll, o.SetAside = nil, m.aside }
	m.b.wrap = m.trap.Wrap
	m.trap.Sprung = func() { m.caughtAt = m.b.store.appended() }
	m.b.store.hold = true
	m.open()
	for _, name := range modelTopics {
		m.topics[name] = &modelTopic{name: name, fifo: name == "f"}
		m.create(name)
	}
	for _, name := range modelGroups {
		g := &modelGroup{name: name, kinds: map[string]kind{}, subs: map[string][]*filter.Expression{}}
		g.limit = rapid.SampledFrom([]int32{0, 1, 3, 1 << 20}).Draw(rt, "limit")
		for _, topic := range modelTopics {
			g.kinds[topic] = rapid.SampledFrom([]kind{plain, plain, ordered, mixed}).Draw(rt, "kind")
			if m.topics[topic].fifo {
				g.kinds[topic] = ordered
			}
		}
		m.groups[name] = g
		m.createGroup(g)
	}
	m.barrier()
	return m
}

// open starts the broker without its loops: the model revives by itself.
func (m *model) open() {
	m.b.open(false)
	m.b.pop.alarm.Stop()
	if m.committer {
		for _, l := range m.b.db.Loops() {
			m.b.loop(l.Run)
		}
		synctest.Wait()
	}
}

func (m *model) history() {
	steps := map[string]func(*rapid.T){
		"send": m.send, "pop": m.pop, "pop again": m.pop, "ack": m.ack, "ack again": m.ack, "ackBatch": m.ackBatch, "ackBits": m.ackBits,
		"change": m.change, "forward": m.forward, "advance": m.advance, "advance again": m.advance, "dispatch": m.dispatch,
		"fail": m.fail, "subscribe": m.subscribe, "present": m.present, "reset": m.reset, "settle": m.settle,
		"delete topic": m.deleteTopic, "delete group": m.deleteGroup, "step": m.step,
		"crash": m.crash, "restart": m.restart, "arm": m.arm,
	}
	for name, step := range steps {
		steps[name] = func(rt *rapid.T) {
			m.waited = false
			rt.Logf("%s at %d", name, m.now())
			step(rt)
			m.endStep()
		}
	}
	m.rt.Repeat(steps)
	m.drain()
}

// endStep crashes if the trap closed, and compares.
func (m *model) endStep() {
	synctest.Wait()
	if m.trap.Caught() {
		m.die(m.trap.Take())
	} else {
		for _, name := range m.doomed {
			m.topicGone(name)
		}
		for _, name := range m.fell {
			m.groupGone(name)
		}
		m.doomed, m.fell = nil, nil
		if !m.committer || m.waited {
			m.barrier()
		}
	}
	m.learn()
	m.check()
}

func (m *model) now() int64 { return m.b.pop.now() }

func (m *model) anyTopic(rt *rapid.T) *modelTopic {
	return m.topics[rapid.SampledFrom(modelTopics).Draw(rt, "topic")]
}

func (m *model) anyGroup(rt *rapid.T) *modelGroup {
	return m.groups[rapid.SampledFrom(modelGroups).Draw(rt, "group")]
}

func (m *model) create(name string) {
	t := m.topics[name]
	kind := ""
	if t.fifo {
		kind = "FIFO"
	}
	m.b.topic(name, kind, 2)
	t.exists = true
}

func (m *model) createGroup(g *modelGroup) {
	cfg, err := m.b.groups.GetOrCreate(g.name)
	m.b.fatal(err)
	cfg = cfg.Clone()
	cfg.RetryMaxTimes = g.limit
	m.b.fatal(m.b.groups.Put(cfg))
}

func (m *model) send(rt *rapid.T) {
	t := m.anyTopic(rt)
	if !t.exists {
		m.create(t.name)
	}
	for range rapid.IntRange(1, 5).Draw(rt, "n") {
		m.sent++
		m.b.send(t.name, rapid.Int32Range(0, 1).Draw(rt, "queue"), fmt.Sprint("m", m.sent), tagged.Draw(rt, "tag"),
			rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "key"))
	}
	if rapid.Bool().Draw(rt, "dispatched") {
		m.dispatch(rt)
	}
}

// dispatch makes what was appended visible; the sources of copies end with it.
func (m *model) dispatch(*rapid.T) {
	m.learn()
	m.ended(m.b.store.held)
	m.b.store.dispatchHeld()
}

func (m *model) pop(rt *rapid.T) {
	t, g := m.anyTopic(rt), m.anyGroup(rt)
	r := Request{
		Group: g.name, Topic: t.name, QueueID: rapid.Int32Range(-1, 1).Draw(rt, "queue"), Max: rapid.IntRange(1, 8).Draw(rt, "max"),
		Invisible: int64(rapid.SampledFrom([]int{10, 50, 1000, 40_000}).Draw(rt, "invisible")),
		Filter:    filters.Draw(rt, "filter"), OnePerGroup: rapid.Bool().Draw(rt, "one"),
		Holder: rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(rt, "holder"), AutoRenew: rapid.Bool().Draw(rt, "renew"),
	}
	switch g.kinds[t.name] {
	case ordered:
		r.Order = true
	case mixed:
		r.Order = rapid.Bool().Draw(rt, "order")
	}
	if r.Order || t.fifo {
		m.attempts++
		back := rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(rt, "attempt")
		r.AttemptID = fmt.Sprint("attempt ", max(m.attempts-back, 1))
	}
	may := m.refusable(&r)
	m.b.pop.Pop(r, func(res Result, err error) {
		if !t.exists {
			if !errors.Is(err, ErrTopicNotFound) {
				m.rt.Fatalf("pop of a deleted topic: %v", err)
			}
			return
		}
		if err != nil {
			m.rt.Fatal(err)
		}
		got := m.took(&r, &res)
		m.refused(may)
		if m.inOrder(&r) && g.kinds[t.name] == ordered {
			m.checkOrder(&r, got)
		}
		m.checkFound(&r, &res, res.Messages())
		res.Release()
	})
}

// refused finds out what a request passed.
func (m *model) refused(may []place) {
	v := m.picture()
	for _, at := range may {
		if seen := v.of(at); seen.what == "finished" {
			m.set(m.places[at], func(c *condition) { c.state = passed })
		}
	}
}

// took checks each message of an answer, and returns the places of new deliveries.
func (m *model) took(r *Request, res *Result) (got []place) {
	topics := reals(r.Group, r.Topic)
	for i := range res.Batches {
		b := &res.Batches[i]
		for j := range b.Records {
			rec := &b.Records[j]
			h := res.Handle(b, rec, "b")
			at := place{r.Group, topics[b.RetryFlag], b.QueueID, h.Offset}
			p := m.places[at]
			if p == nil {
				m.rt.Fatalf("%v was delivered and never sent", at)
			}
			var msg message.Message
			if _, err := message.DecodeStored(rec.Bytes, &msg); err != nil || string(msg.Body) != p.id || msg.ReconsumeTimes != p.count {
				m.rt.Fatalf("%v: delivered %s after %d deliveries, want %s after %d (%v)", at, msg.Body, msg.ReconsumeTimes, p.id, p.count, err)
			}
			m.handles = append(m.handles, given{at: at, handle: h, era: m.era, life: m.life(at)})
			if r.AttemptID != "" && p.attempt == r.AttemptID && p.state == inFlight && p.popTime == h.PopTime {
				continue // the same attempt again
			}
			switch acked, finally := m.final[[2]string{r.Group, p.id}]; {
			case finally && !m.again[[2]string{r.Group, p.id}]:
				m.rt.Fatalf("%s came back at %v after its OK at %v", p.id, at, acked)
			case p.state != visible:
				m.rt.Fatalf("%s at %v was delivered in state %+v", p.id, at, p.condition)
			case h.PopTime <= p.popTime:
				m.rt.Fatalf("%v was delivered at %d and then at %d", at, p.popTime, h.PopTime)
			case !r.Filter.Match(withTag(p.tag)):
				m.rt.Fatalf("%v of tag %s was delivered to %s", at, p.tag, r.Filter.Text())
			case b.Attempts != nil && b.Attempts[j] != p.attempts && m.groups[r.Group].kinds[r.Topic] == ordered:
				m.rt.Fatalf("%v: attempt %d, want %d", at, b.Attempts[j], p.attempts)
			}
			m.set(p, func(c *condition) {
				*c = condition{
					state: inFlight, popTime: h.PopTime, due: h.PopTime + r.Invisible, invisible: r.Invisible,
					renew: r.AutoRenew && r.Holder != "", holder: r.Holder, attempt: noOrder, attempts: c.attempts,
				}
				if m.inOrder(r) {
					c.attempt = r.AttemptID
				}
			})
			got = append(got, at)
		}
	}
	return got
}

func (m *model) advance(rt *rapid.T) {
	before := m.now()
	ms := rapid.SampledFrom([]int64{1, 7, 60, 1200, 30_000, 100_000}).Draw(rt, "ms")
	m.b.clock.Advance(time.Duration(ms) * time.Millisecond)
	if now := m.now(); now != before+ms {
		m.rt.Fatalf("time went from %d to %d in %d ms", before, now, ms)
	}
	if rapid.Bool().Draw(rt, "revive") {
		m.revive()
	}
}

// revive runs what the loop would run now.
func (m *model) revive() {
	m.waited = m.lapse()
	for m.b.pop.reviveDue() {
	}
	v := m.picture()
	for at, p := range m.all() {
		// A hand-back that found too much set aside becomes a copy; and of what is consumed
		// both ways nobody counts the attempts.
		seen, anyway := v.of(at), m.groups[at.group].kinds[m.origin(at)] == mixed
		switch {
		case p.state == visible && (p.suspend || anyway) && seen.what == "flies":
			p.state, m.waited = claimed, true
		case p.state == claimed && anyway && seen.what == "visible":
			p.state = visible
		case p.state == visible:
			p.suspend = false
		}
	}
	m.learn()
}

// settle gives the committer time.
func (m *model) settle(*rapid.T) {
	time.Sleep(lazily + time.Millisecond)
	m.waited = true
}

func (m *model) fail(rt *rapid.T) {
	g := m.anyGroup(rt)
	topics := []string{names.DeadLetter(g.name)}
	for _, t := range modelTopics {
		topics = append(topics, names.PopRetryV1(t, g.name))
	}
	topic := rapid.SampledFrom(topics).Draw(rt, "failing")
	m.b.store.mu.Lock()
	defer m.b.store.mu.Unlock()
	if m.b.store.failTopics[topic] != nil {
		delete(m.b.store.failTopics, topic)
	} else {
		m.b.store.failTopics[topic] = storage.ErrDiskFull
	}
}

func (m *model) subscribe(rt *rapid.T) {
	g, t := m.anyGroup(rt), m.anyTopic(rt)
	var live []*filter.Expression
	var subs []*clients.Subscription
	for range rapid.IntRange(0, 2).Draw(rt, "members") {
		e := filters.Draw(rt, "filter")
		live = append(live, e)
		subs = append(subs, &clients.Subscription{Expression: e.Text(), Codes: e.CodeSet()})
	}
	g.subs[t.name] = live
	m.b.mu.Lock()
	m.b.subs[g.name+"/"+t.name] = subs
	m.b.mu.Unlock()
}

func (m *model) present(rt *rapid.T) {
	c := rapid.SampledFrom([]string{"c1", "c2"}).Draw(rt, "client")
	m.b.mu.Lock()
	m.b.present[c] = !m.b.present[c]
	m.b.mu.Unlock()
}

// reset is an administrator's: from there on everything comes, before it nothing.
func (m *model) reset(rt *rapid.T) {
	g, t := m.anyGroup(rt), m.anyTopic(rt)
	queue := rapid.Int32Range(0, 1).Draw(rt, "queue")
	w := m.b.pop.window(windowKey{g.name, t.name, queue})
	end := m.b.store.MaxOffset(t.name, queue)
	if w == nil || !t.exists {
		return
	}
	to := rapid.Int64Range(0, end).Draw(rt, "to")
	m.b.offsets.Reset(g.name, t.name, queue, to)
	m.b.pop.prepare(w)
	for i := range m.handles {
		if at := m.handles[i].at; at.group == g.name && at.topic == t.name && at.queue == queue {
			m.handles[i].void = true
		}
	}
	for at, p := range m.all() {
		if at.group != g.name || at.topic != t.name || at.queue != queue {
			continue
		}
		m.set(p, func(c *condition) {
			copied := c.state == claimed || c.state == moved
			*c = condition{state: passed, popTime: c.popTime}
			if at.offset >= to {
				// Of what had lapsed before there are two now: it comes again from here, and its
				// copy from the retry topic.
				m.again[[2]string{at.group, p.id}] = m.again[[2]string{at.group, p.id}] || copied
				c.state = visible
				delete(m.final, [2]string{at.group, p.id})
			}
		})
	}
}

// step sets the machine's clock.
func (m *model) step(rt *rapid.T) {
	m.b.clock.Step(time.Duration(rapid.SampledFrom([]int{-3600, -5, 5, 3600}).Draw(rt, "s")) * time.Second)
}

// deleteTopic deletes a topic and its retry topics as admin does.
func (m *model) deleteTopic(rt *rapid.T) {
	t := m.anyTopic(rt)
	if !t.exists {
		return
	}
	all := []string{t.name}
	for _, g := range modelGroups {
		for _, retry := range reals(g, t.name)[1:] {
			if _, ok := m.b.topics.Get(retry); ok && !m.shared(retry, g, t.name) {
				all = append(all, retry)
			}
		}
	}
	m.doomed = all
	m.b.fatal(m.b.topics.DeleteWith(all, func(b *state.Batch) {
		for _, name := range all {
			m.b.offsets.DropTopic(name, b)
			m.b.pop.DropTopic(name, b)
		}
	}))
	m.waited = true
}

// shared reports whether a retry topic is another pair's as well, and stays.
func (m *model) shared(retry, group, topic string) bool {
	for _, g := range modelGroups {
		if o, ok := names.OriginTopic(retry, g); ok && g != group && o != topic && m.topics[o] != nil && m.topics[o].exists {
			return true
		}
	}
	return false
}

// topicGone forgets what was in a topic, whose deletion is committed.
func (m *model) topicGone(name string) {
	m.b.store.drop(name)
	if t := m.topics[name]; t != nil {
		t.exists = false
		t.life++
		// In a retry topic that stays, what came from this topic is nobody's.
		for at := range m.places {
			if m.origin(at) == name {
				delete(m.places, at)
			}
		}
	}
	for at := range m.places {
		if at.topic == name {
			delete(m.places, at)
		}
	}
}

func (m *model) deleteGroup(rt *rapid.T) {
	g := m.anyGroup(rt)
	if _, ok := m.b.groups.Get(g.name); !ok {
		m.createGroup(g)
	}
	m.fell = []string{g.name}
	m.b.fatal(m.b.groups.DeleteWith(g.name, func(b *state.Batch) {
		m.b.offsets.DropGroup(g.name, b)
		m.b.pop.DropGroup(g.name, b)
	}))
	m.waited = true
}

// groupGone begins a group anew. Its retry topics stay, and with them what is in them.
func (m *model) groupGone(name string) {
	g := m.groups[name]
	g.life++
	for at, p := range m.all() {
		if at.group == name {
			m.set(p, func(c *condition) { *c = condition{popTime: c.popTime} })
			delete(m.final, [2]string{name, p.id})
			m.again[[2]string{name, p.id}] = true
		}
	}
	m.createGroup(g)
}

// drain consumes everything: nothing may be lost.
func (m *model) drain() {
	m.trap.Disarm()
	m.b.mu.Lock()
	clear(m.b.present)
	clear(m.b.subs)
	m.b.mu.Unlock()
	m.b.store.mu.Lock()
	clear(m.b.store.failTopics)
	m.b.store.mu.Unlock()
	for range 300 {
		m.b.clock.Advance(3 * time.Hour)
		m.revive()
		m.dispatch(m.rt)
		left := 0
		for at, p := range m.all() {
			if m.topicOf(at).exists && !p.state.finished() {
				left++
			}
		}
		if left == 0 {
			m.checkCopies()
			return
		}
		for _, g := range modelGroups {
			for _, t := range modelTopics {
				if m.topics[t].exists {
					m.consume(g, t)
				}
			}
		}
		synctest.Wait()
	}
	for at, p := range m.all() {
		if m.topicOf(at).exists && !p.state.finished() {
			m.rt.Errorf("%s at %v was never delivered: %+v", p.id, at, p.condition)
		}
	}
	m.rt.FailNow()
}

func (m *model) consume(group, topic string) {
	r := Request{Group: group, Topic: topic, QueueID: -1, Max: 32, Invisible: 1000, Order: m.groups[group].kinds[topic] == ordered, AttemptID: "drain"}
	if r.Order {
		m.attempts++
		r.AttemptID = fmt.Sprint("attempt ", m.attempts)
	}
	sent := 0
	m.b.pop.Pop(r, func(res Result, err error) {
		m.b.fatal(err)
		first := len(m.handles)
		m.took(&r, &res)
		res.Release()
		for _, h := range m.handles[first:] {
			m.b.pop.Ack(group, topic, h.handle, func(err error) { m.answer(func() { m.acked(h, err, []error{nil}) }) })
		}
		sent = len(m.handles) - first
	})
	m.judge(sent)
}

// checkCopies: what moved has one copy.
func (m *model) checkCopies() {
	for at, p := range m.all() {
		if p.state != moved {
			continue
		}
		w := window{key: windowKey{at.group, at.topic, at.queue}}
		if n := m.copies[w.source(at.offset, p.popTime)]; n != 1 {
			m.rt.Fatalf("%s at %v moved with %d copies", p.id, at, n)
		}
	}
}
