package pop

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// This file is a POP broker in few words: what a message may be to a group, and what a call
// may be answered. history_test.go makes random calls and compares.

// place is where a group finds a message: in its own topic, and in a retry topic after each
// lapse.
type place struct {
	group, topic string
	queue        int32
	offset       int64
}

type placeState int

const (
	visible placeState = iota
	inFlight
	claimed // lapsed; its copy is awaited
	done    // acknowledged with OK
	moved   // its copy was dispatched
	passed  // nobody wanted it, or an administrator went past it
)

// finished states are never left, but for an administrator's reset.
func (s placeState) finished() bool { return s >= done }

// condition is what changes of a place.
type condition struct {
	state     placeState
	popTime   int64 // of the last delivery or change
	due       int64
	invisible int64
	suspend   bool
	renew     bool
	forwarded bool // its dead letter is in the log
	holder    string
	attempt   string
	attempts  int32 // of an ordered topic: deliveries that count before this one
}

type modelPlace struct {
	condition
	id, tag, key string
	count        int32       // the record's reconsumeTimes
	past         []condition // what a crash now may bring back
}

// kind is how a group consumes a topic.
type kind int

const (
	plain kind = iota
	ordered
	mixed // both in turn: then no order is promised, and attempts are not counted
)

type modelGroup struct {
	name  string
	limit int32 // retryMaxTimes
	kinds map[string]kind
	subs  map[string][]*filter.Expression // of live members, by topic
	life  int                             // deletions before
}

type modelTopic struct {
	name   string
	fifo   bool
	exists bool
	life   int
}

// given is a receipt that a consumer got.
type given struct {
	at     place
	handle receipt.Handle
	era    int  // restarts before it
	life   int  // of its group and topic
	void   bool // an administrator took it back
}

// reals are the real topics of a group's consumption of a topic, by retry flag.
func reals(group, topic string) []string {
	return []string{topic, names.PopRetryV1(topic, group), names.PopRetryV2(topic, group)}
}

// origin is the topic that a place's message was sent to.
func (m *model) origin(p place) string {
	if o, ok := names.OriginTopic(p.topic, p.group); ok {
		return o
	}
	return p.topic
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.topic, b.topic), cmp.Compare(a.queue, b.queue), cmp.Compare(a.offset, b.offset))
}

// all walks through the places in order, so that a history fails in the same way again.
func (m *model) all() iter.Seq2[place, *modelPlace] {
	return func(yield func(place, *modelPlace) bool) {
		for _, at := range slices.SortedFunc(maps.Keys(m.places), comparePlaces) {
			if p := m.places[at]; p != nil && !yield(at, p) {
				return
			}
		}
	}
}

func (m *model) life(p place) int { return m.groups[p.group].life + m.topics[m.origin(p)].life }

// set changes a place, remembering what it was for the case of a crash.
func (m *model) set(p *modelPlace, change func(*condition)) {
	if len(p.past) == 0 {
		m.touched = append(m.touched, p)
	}
	p.past = append(p.past, p.condition)
	change(&p.condition)
}

// barrier says that everything so far outlives a crash.
func (m *model) barrier() {
	for _, p := range m.touched {
		p.past = nil
	}
	m.touched = nil
}

// learn takes up what was appended since. A copy must name a delivery that is claimed, or
// was forwarded, once.
func (m *model) learn() {
	s := m.b.store
	s.mu.Lock()
	news := slices.Clone(s.appends[m.learned:])
	m.learned = len(s.appends)
	s.mu.Unlock()
	for _, d := range news {
		var msg message.Message
		rec, err := s.ReadAt(d.PhysicalOffset)
		if err != nil {
			m.rt.Fatal(err)
		}
		if _, err := message.DecodeStored(rec, &msg); err != nil {
			m.rt.Fatal(err)
		}
		m.copied(d, &msg)
		for _, g := range m.order {
			if at := (place{g, d.Topic, d.QueueID, d.QueueOffset}); m.concerns(at, &msg) {
				m.places[at] = &modelPlace{id: string(msg.Body), tag: msg.Tag(), key: msg.Properties.Value(message.PropertyShardingKey), count: msg.ReconsumeTimes}
			}
		}
	}
}

// concerns reports whether a record is for the group of at.
func (m *model) concerns(at place, msg *message.Message) bool {
	if m.topics[at.topic] != nil {
		return true
	}
	return names.IsRetry(at.topic) && msg.Properties.Value(message.PropertyOriginGroup) == at.group
}

// copied checks a copy against the delivery that it comes from (P6).
func (m *model) copied(d storage.Dispatched, msg *message.Message) {
	if d.Source == "" {
		return
	}
	k, off, popTime, _ := parseSource(d.Source)
	if m.copies[d.Source]++; m.copies[d.Source] > 1 {
		m.rt.Fatalf("%s was copied twice", d.Source)
	}
	at := place{k.group, k.topic, k.queue, off}
	p := m.places[at]
	switch {
	case p == nil, p.popTime != popTime, p.state != claimed && !p.forwarded:
		m.rt.Fatalf("%s was copied to %s and is %+v", d.Source, d.Topic, p)
	case p.id != string(msg.Body):
		m.rt.Fatalf("%s is %s and its copy %s", d.Source, p.id, msg.Body)
	}
	m.checkAttempts(at, p, d, msg)
}

// checkAttempts: a group with retryMaxTimes N sees N+1 deliveries that count.
func (m *model) checkAttempts(at place, p *modelPlace, d storage.Dispatched, msg *message.Message) {
	g := m.groups[at.group]
	kind := g.kinds[m.origin(at)]
	dead := d.Topic == names.DeadLetter(at.group)
	if kind == mixed || p.forwarded {
		return
	}
	spent := p.count + 1
	if kind == ordered {
		spent = p.attempts + 1
	}
	if p.suspend {
		spent--
	}
	if want := spent > g.limit; want != dead {
		m.rt.Fatalf("%v lapsed after %d deliveries that count, of %d, and went to %s", at, spent, g.limit+1, d.Topic)
	}
	if !dead && msg.ReconsumeTimes != spent {
		m.rt.Fatalf("%v has had %d deliveries, its copy says %d", at, spent, msg.ReconsumeTimes)
	}
}

// ended is told what is dispatched: the sources of copies end with it.
func (m *model) ended(ds []storage.Dispatched) {
	for _, d := range ds {
		if k, off, popTime, ok := parseSource(d.Source); ok {
			p := m.places[place{k.group, k.topic, k.queue, off}]
			if p != nil && (p.state == claimed || p.state == inFlight) && p.popTime == popTime {
				m.set(p, func(c *condition) { c.state, c.forwarded = moved, false })
			}
		}
	}
}

// renewable: its holder is there, and has not had it for too long.
func (m *model) renewable(p *modelPlace, now int64) bool {
	return p.renew && m.b.present[p.holder] && now-p.popTime < m.b.pop.o.MaxRenew.Milliseconds()
}

// lapse is what becomes of everything that is due. It reports whether copies are made.
func (m *model) lapse() (copies bool) {
	now := m.now()
	for at, p := range m.all() {
		if p.state != inFlight || p.due > now || p.forwarded && !m.renewable(p, now) {
			continue
		}
		g := m.groups[at.group]
		inOrder := p.attempt != noOrder
		m.set(p, func(c *condition) {
			switch {
			case m.renewable(p, now):
				c.due = now + max(c.invisible, 1000)
			case inOrder && (c.suspend || c.attempts+1 <= g.limit):
				c.state = visible
				if !c.suspend {
					c.attempts++
				}
			case c.suspend && !inOrder:
				c.state = visible // or claimed, where too much is set aside already
			default:
				c.state, copies = claimed, true
			}
		})
	}
	return copies
}

// noOrder marks a delivery to a request without an order.
const noOrder = "-"

// verdicts is what an ack of h may be answered.
func (m *model) verdicts(h given) []error {
	p, now := m.places[h.at], m.now()
	t := h.handle.PopTime
	if p != nil && (p.state == passed || p.state == done) && h.era != m.era {
		return []error{nil, ErrIllegal, ErrExpired, ErrStale} // it is finished either way
	}
	if h.void || h.life != m.life(h.at) || p == nil {
		return []error{ErrIllegal, ErrExpired, ErrStale}
	}
	if t > p.popTime && p.state != visible {
		if p.state == done {
			return []error{nil, ErrIllegal, ErrExpired} // it is finished either way
		}
		return []error{ErrIllegal, ErrExpired} // of a delivery that a crash has undone
	}
	switch p.state {
	case inFlight:
		switch {
		case t < p.popTime:
			return []error{ErrStale}
		case p.forwarded:
			return []error{ErrExpired} // a copy is on its way, as after a lapse
		case p.due <= now && !m.renewable(p, now):
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
	case visible:
		return []error{ErrExpired, ErrIllegal}
	}
	return []error{ErrExpired, ErrStale}
}

// withTag is the properties of a message with a tag.
func withTag(tag string) message.Properties {
	return message.Properties("").With(message.PropertyTags, tag)
}

// wanted reports whether a live member of the group takes tag.
func (g *modelGroup) wanted(topic, tag string) bool {
	return slices.ContainsFunc(g.subs[topic], func(e *filter.Expression) bool { return e.Match(withTag(tag)) })
}

// refusable are the places that a request may pass: it does not want them, nor does anybody
// else.
func (m *model) refusable(r *Request) (all []place) {
	for at, p := range m.all() {
		if p.state == visible && at.group == r.Group && m.origin(at) == r.Topic && !r.Filter.Match(withTag(p.tag)) && !m.groups[r.Group].wanted(r.Topic, p.tag) {
			all = append(all, at)
		}
	}
	return all
}

// checkOrder: what is delivered in order comes after everything of its message group that is
// not finished.
func (m *model) checkOrder(r *Request, got []place) {
	in := map[place]bool{}
	for _, at := range got {
		in[at] = true
	}
	for i, at := range got {
		p := m.places[at]
		for _, other := range got[:i] {
			same := m.places[other].key == p.key && other.queue == at.queue
			if r.OnePerGroup == same {
				m.rt.Fatalf("%v (%q) and %v (%q) are in one answer", other, m.places[other].key, at, p.key)
			}
		}
		for off := range at.offset {
			before := place{at.group, at.topic, at.queue, off}
			if e := m.places[before]; e != nil && e.key == p.key && !e.state.finished() && !in[before] {
				m.rt.Fatalf("%v of message group %q was delivered while %d of it is in state %d", at, p.key, off, e.state)
			}
		}
	}
}

// checkFound: a request that wants everything gets what is there.
func (m *model) checkFound(r *Request, res *Result, got int) {
	if !r.Filter.MatchesAll() || got >= r.Max || r.QueueID >= 0 && got > 0 {
		return
	}
	inOrder := m.inOrder(r)
	if inOrder && (got > 0 || m.aside < 100 || m.groups[r.Group].kinds[r.Topic] == mixed) {
		return
	}
	for at, p := range m.all() {
		if at.group != r.Group || m.origin(at) != r.Topic || p.state != visible || p.popTime >= res.PopTime {
			continue
		}
		if at.topic == r.Topic && r.QueueID >= 0 && at.queue != r.QueueID || at.offset >= m.b.store.MaxOffset(at.topic, at.queue) {
			continue
		}
		if inOrder && (at.topic != r.Topic || m.held(at, p.key)) {
			continue
		}
		if w := m.b.pop.window(windowKey{at.group, at.topic, at.queue}); w != nil && w.mu.floor > res.PopTime {
			continue // reset in this very millisecond; an answer has one popTime
		}
		m.rt.Fatalf("%v is there and was not delivered to %+v at %d, which got %d", at, r, res.PopTime, got)
	}
}

// held reports whether something earlier of at's message group is not finished.
func (m *model) held(at place, key string) bool {
	for off := range at.offset {
		e := m.places[place{at.group, at.topic, at.queue, off}]
		if e != nil && e.key == key && !e.state.finished() {
			return true
		}
	}
	return false
}

func (m *model) inOrder(r *Request) bool { return r.Order || m.topics[r.Topic].fifo }

// check compares the windows with the model (P1, P3, P5).
func (m *model) check() {
	got := m.picture()
	lowest := map[place]int64{}
	for at, p := range m.all() {
		if !m.topicOf(at).exists {
			continue
		}
		seen := got.of(at)
		want := [...]string{visible: "visible", inFlight: "flies", claimed: "flies", done: "finished", moved: "finished", passed: "finished"}[p.state]
		if seen.what != want {
			m.rt.Fatalf("%s at %v is %s, want %+v", p.id, at, seen.what, p.condition)
		}
		if want == "flies" && seen.f.PopTime != p.popTime {
			m.rt.Fatalf("%v flies under %d, want %+v", at, seen.f.PopTime, p.condition)
		}
		if p.state == inFlight && !p.forwarded && seen.f.Due != p.due {
			m.rt.Fatalf("%v is due at %d, want %+v", at, seen.f.Due, p.condition)
		}
		if queue := (place{at.group, at.topic, at.queue, 0}); !p.state.finished() {
			if low, ok := lowest[queue]; !ok || at.offset < low {
				lowest[queue] = at.offset
			}
		}
	}
	for _, queue := range slices.SortedFunc(maps.Keys(lowest), comparePlaces) {
		low := lowest[queue]
		if v, ok := got.views[queue]; ok && v.Lowest > low {
			m.rt.Fatalf("%v: the lowest that is not done is %d, said to be %d", queue, low, v.Lowest)
		}
		if off, ok := m.b.offsets.Query(queue.group, queue.topic, queue.queue); ok && off > low {
			m.rt.Fatalf("%v: the lowest that is not done is %d, the consumer offset %d", queue, low, off)
		}
	}
}

func (m *model) topicOf(at place) *modelTopic { return m.topics[m.origin(at)] }

// picture is the broker's own view, by place.
type picture struct {
	views map[place]View
	fly   map[place]InFlight
	aside map[place]bool
}

type sight struct {
	what string
	f    InFlight
}

func (m *model) picture() picture {
	out := picture{views: map[place]View{}, fly: map[place]InFlight{}, aside: map[place]bool{}}
	for _, v := range m.b.pop.Dump(nil) {
		at := func(off int64) place { return place{v.Group, v.Topic, v.QueueID, off} }
		out.views[at(0)] = v
		for _, f := range v.InFlight {
			for _, off := range f.Offsets {
				if _, twice := out.fly[at(off)]; twice {
					m.rt.Fatalf("%v is in flight twice", at(off))
				}
				out.fly[at(off)] = f
			}
		}
		for _, off := range v.Aside {
			out.aside[at(off)] = true
		}
	}
	return out
}

// of says what at is: exactly one thing (P5).
func (v *picture) of(at place) sight {
	f, flies := v.fly[at]
	aside := v.aside[at]
	next := v.views[place{at.group, at.topic, at.queue, 0}].Next
	below := at.offset < next
	var all []string
	if flies {
		all = append(all, "flies")
	}
	if aside || !below && !flies {
		all = append(all, "visible")
	}
	if aside && !below || flies && !below {
		all = append(all, "above next")
	}
	if len(all) == 0 {
		all = append(all, "finished")
	}
	return sight{strings.Join(all, " and "), f}
}

var tagged = rapid.SampledFrom([]string{"A", "B", "C"})

var filters = rapid.SampledFrom(func() (all []*filter.Expression) {
	for _, text := range []string{"*", "*", "*", "A", "B", "A || C"} {
		e, err := filter.Compile("TAG", text)
		if err != nil {
			panic(fmt.Sprint(text, err))
		}
		all = append(all, e)
	}
	return all
}())
