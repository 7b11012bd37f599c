package pop

import (
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// attempt is one look at a request's queues.
type attempt struct {
	res       Result
	before    seen
	reach     reach
	more      bool // the scan stopped at its limit, not at the end
	roomAgain bool // a queue that had set aside to the limit has room again
}

// scanRounds bounds how many reads without a match one attempt makes in one queue before
// it lets others have the subject.
const scanRounds = 64

// attempt reads queues in the planned order until enough was found. The caller holds q's
// subject.
func (p *Popper) attempt(q *request) (attempt, error) {
	s := q.s
	var a attempt
	a.before, a.reach = p.picture(q)
	a.res = Result{Status: PollingTimeout, PopTime: p.now(), Invisible: q.Invisible, Order: q.ordered}
	switch {
	case q.leave:
		p.leave(q, &a)
		return a, nil
	case q.notify != nil:
		return a, p.look(q, &a)
	}
	cfg := p.o.Broker.Get()
	s.steps = plan(s.steps[:0], planInput{
		queue: q.QueueID, queues: a.reach[receipt.FlagNormal], retryQueues: a.reach, counter: s.counter,
		ordered: q.ordered, priority: q.priority, factor: q.factor,
		probability:         int(cfg.PopFromRetryProbability),
		priorityProbability: int(cfg.PopFromRetryProbabilityByPriority),
		ascending:           cfg.PriorityOrderAsc,
	})
	s.counter++
	p.initialize(q, a.reach)
	a.res.PopTime = p.now() // not earlier than the windows that were made now
	if q.ordered && q.AttemptID != "" && p.repeat(q, &a) {
		return a, nil
	}
	found := 0
	for _, st := range s.steps {
		if st.last && found > 0 {
			break
		}
		w := p.windowOf(s, st.flag, st.queue)
		if found >= q.Max || q.ordered && !q.OnePerGroup && found > 0 {
			a.res.RestNum += p.rest(w)
			continue
		}
		t := taking{p: p, q: q, w: w, a: &a, want: q.Max - found, threshold: -1}
		if cfg.EnablePopMessageThreshold {
			t.threshold = cfg.PopInflightMessageThreshold
		}
		n := t.take()
		for n == 0 && t.order != nil && len(t.order.refused) > 0 {
			// What was chosen turned out to be unwanted, and is known now: the next choice
			// is another.
			t = taking{p: p, q: q, w: w, a: &a, want: t.want, threshold: t.threshold}
			n = t.take()
		}
		found += n
		if t.refused && a.res.Reason == "" {
			a.res.Reason = throttled(w, t.threshold)
		}
		a.res.RestNum += p.rest(w)
	}
	if !q.ordered && p.o.Left != nil && p.o.Left(q.Group, q.Topic) {
		p.leave(q, &a) // this member does not know yet
	}
	switch {
	case found == 0 && a.res.Reason != "":
		a.res.Status = Throttled
	case found > 0:
		a.res.Status = Found
		if f := p.o.Events.Popped; f != nil {
			f(q.Group, q.Topic, found)
		}
	}
	return a, nil
}

// rest is what the group could still be given from w's queue.
func (p *Popper) rest(w *window) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := int64(len(w.mu.aside))
	if w.mu.known {
		rest += max(p.o.Store.MaxOffset(w.key.topic, w.key.queue)-w.mu.next, 0)
	}
	return rest
}

// taking is one queue's part of an attempt.
type taking struct {
	p         *Popper
	q         *request
	w         *window
	a         *attempt
	want      int
	threshold int64 // messages in flight that stop a queue; negative: none
	refused   bool  // it is stopped

	epoch   uint64
	next    int64 // of the window, while this taking moves it
	records []storage.Record
	passed  []int64      // set aside before and to be so no more
	aside   []asideEntry // to be set aside
	learned []asideEntry // set aside before, refused, and now known for what they are
	full    bool         // nothing more can be set aside
	bytes   int
	minPop  int64     // the least popTime that is later than all earlier deliveries
	order   *ordering // of an ordered request
	keys    []uint64  // message groups of records, when ordered
	counts  []int32   // earlier deliveries of records, when ordered

	othersKnown bool
	others      []*filter.Expression
}

// take delivers up to want messages and returns how many.
func (t *taking) take() int {
	w := t.w
	t.p.prepare(w)
	w.mu.Lock()
	t.epoch, t.next = w.mu.epoch, w.mu.next
	full := len(w.mu.aside) >= t.p.o.SetAside
	if w.mu.dropped {
		w.mu.Unlock()
		return 0
	}
	if t.threshold >= 0 {
		t.want = min(t.want, int(max(t.threshold-int64(w.mu.inFlight), 0)))
		if t.refused = t.want == 0; t.refused {
			w.mu.refused = true
			w.mu.Unlock()
			return 0
		}
	}
	if t.q.ordered {
		t.order = newOrdering(w, t.q.OnePerGroup)
	}
	if t.minPop = w.mu.floor; t.minPop > t.a.res.PopTime && len(t.a.res.Batches) > 0 {
		w.mu.Unlock()
		return 0 // its batch needs a later popTime than the answer has
	}
	room := t.p.o.SetAside - len(w.mu.aside)
	selected := t.selectAsideLocked()
	w.mu.Unlock()
	t.fromAside(selected)
	t.fromQueue(room)
	return t.deliver(full)
}

// unwantedFor is how long a message stays set aside when no member wants it any more: the
// member may be restarting.
const unwantedFor = 60_000

// mostDoubtful is how many messages that were set aside one attempt reads only to learn
// whether its filter wants them.
const mostDoubtful = 256

// selectAsideLocked picks what was set aside and this request may have. Once a second it
// looks for what nobody wants any more, which passes after a while.
func (t *taking) selectAsideLocked() (selected []asideEntry) {
	w, now := t.w, t.a.res.PopTime
	if len(w.mu.aside) == 0 {
		return nil
	}
	if t.order != nil && w.mu.stuck && t.q.Filter.MatchesAll() {
		t.order.trusting = true
		return nil
	}
	sweep := t.order == nil && now-w.mu.swept >= 1000
	if sweep {
		w.mu.swept = now
	}
	sure := 0
	for i := range w.mu.aside {
		e := &w.mu.aside[i]
		wanted := e.mayMatch(t.q.Filter)
		switch {
		case !wanted && t.order != nil:
			t.order.block(e.group)
		case wanted && t.order != nil:
			if len(selected) < t.want && t.order.admitLocked(e.group) {
				selected = append(selected, *e)
			} else {
				t.order.block(e.group)
			}
		case wanted:
			if sure < t.want && len(selected) < t.want+mostDoubtful {
				selected = append(selected, *e)
				if e.sure(t.q.Filter) {
					sure++
				}
			} else {
				t.a.more = t.a.more || sure < t.want
				if !sweep {
					return selected
				}
			}
			e.unwanted = 0
		case sweep && t.wantedByOthers(e.tagsCode, e.properties):
			e.unwanted = 0
		case sweep && e.unwanted == 0:
			e.unwanted = now
		case sweep && now-e.unwanted >= unwantedFor:
			t.passed = append(t.passed, e.offset)
		}
	}
	w.mu.stuck = t.order != nil && len(selected) == 0 && t.q.Filter.MatchesAll()
	return selected
}

// fromAside reads what was selected.
func (t *taking) fromAside(selected []asideEntry) {
	for i := range selected {
		e := &selected[i]
		if t.order != nil && t.order.refused[e.group] {
			continue
		}
		res := t.p.o.Store.Read(storage.ReadRequest{Topic: t.w.key.topic, QueueID: t.w.key.queue, Offset: e.offset, MaxMessages: 1})
		if res.Status != storage.Found || res.Records[0].QueueOffset != e.offset {
			t.skipped(e.offset, e.offset+1)
			t.passed = append(t.passed, e.offset)
			res.Release()
			continue
		}
		rec := res.Records[0]
		if !e.sure(t.q.Filter) {
			e.learn(&rec)
			if !e.mayMatch(t.q.Filter) {
				t.learned = append(t.learned, *e)
				if t.order != nil {
					t.order.refuse(e.group, !slices.Contains(t.keys, e.group))
				}
				res.Release()
				continue
			}
		}
		if len(t.records) == t.want {
			res.Release()
			break
		}
		t.passed = append(t.passed, e.offset)
		t.minPop = max(t.minPop, e.lastPop+1)
		t.add(rec, e.group, e.attempts)
		t.bytes += len(rec.Bytes)
		t.a.res.held = append(t.a.res.held, res)
	}
	slices.Sort(t.passed)
}

// fromQueue reads on from the window's next offset.
func (t *taking) fromQueue(room int) {
	// Where nobody else wants what this request refuses, the store passes it unread.
	var refuse *filter.Expression
	if t.order == nil && !t.q.Filter.MatchesAll() && t.alone() {
		refuse = t.q.Filter
	}
	for rounds := 0; len(t.records) < t.want && t.bytes < t.p.o.MaxBytes && !t.full; rounds++ {
		if rounds == scanRounds {
			t.a.more = true
			return
		}
		res := t.p.o.Store.Read(storage.ReadRequest{
			Topic: t.w.key.topic, QueueID: t.w.key.queue, Offset: t.next,
			MaxMessages: t.readCount(refuse), MaxBytes: t.p.o.MaxBytes, Filter: refuse,
		})
		switch res.Status {
		case storage.Found:
			end := res.Next >= res.Max
			before := len(t.records)
			t.sift(res, room)
			if len(t.records) > before {
				t.bytes += res.Bytes
				t.a.res.held = append(t.a.res.held, res)
			} else {
				res.Release()
			}
			if end || t.order != nil && t.order.stopped {
				return
			}
		case storage.NoMatchedMessage:
			if res.Next <= t.next {
				return
			}
			t.next = res.Next
		case storage.OffsetTooSmall, storage.MessageWasRemoved, storage.OffsetFoundNull, storage.OffsetOverflowBadly:
			if !t.correct(res) {
				return
			}
		default:
			return
		}
	}
}

// readCount is how many records are worth reading at once: with a filter or an order most
// may have to be passed.
func (t *taking) readCount(refuse *filter.Expression) int {
	if t.order != nil || refuse == nil && !t.q.Filter.MatchesAll() {
		return MaxMessages
	}
	return t.want - len(t.records)
}

// correct moves an offset that is out of range to the nearest valid end.
func (t *taking) correct(res storage.ReadResult) bool {
	from, to := t.next, res.Next
	if res.Status == storage.OffsetOverflowBadly {
		to = res.Max
	} else {
		to = max(to, res.Min)
	}
	if to == from {
		return false
	}
	if to > from {
		t.skipped(from, to)
	}
	if f := t.p.o.Events.Corrected; f != nil {
		f(t.q.Group, t.w.key.topic, t.w.key.queue, from, to)
	}
	t.next = to
	return true
}

func (t *taking) skipped(from, to int64) {
	if f := t.p.o.Events.Skipped; f != nil {
		f(t.q.Group, t.w.key.topic, t.w.key.queue, from, to)
	}
}

// sift goes through records read from the queue: each is delivered, set aside, or passed.
func (t *taking) sift(res storage.ReadResult, room int) {
	plain := t.order == nil && t.q.Filter.MatchesAll() && t.w.flag != receipt.FlagRetryV1
	if plain && len(t.records) == 0 && len(res.Records) <= t.want {
		t.records = res.Records[:len(res.Records):len(res.Records)] // the usual case copies nothing
		t.next = res.Next
		return
	}
	for i := range res.Records {
		rec := &res.Records[i]
		if len(t.records) >= t.want {
			t.next = rec.QueueOffset
			return
		}
		switch {
		case t.w.flag == receipt.FlagRetryV1 && t.q.foreign(rec):
		case !t.q.Filter.MatchRecord(rec.TagsCode, rec.Bytes):
			if p, _ := message.PropertiesOf(rec.Bytes); !t.wantedByOthers(rec.TagsCode, p) {
				break
			}
			if !t.keep(rec, 0, room) {
				return
			}
		case t.order != nil:
			key := messageGroup(rec.Bytes)
			switch {
			case t.order.ends(key):
				t.next, t.order.stopped = rec.QueueOffset, true
				return
			case t.order.admit(key):
				t.add(*rec, key, 0)
			default:
				t.order.block(key)
				if !t.keep(rec, key, room) {
					return
				}
			}
		default:
			t.add(*rec, 0, 0)
		}
		t.next = rec.QueueOffset + 1
	}
	t.next = res.Next
}

// keep sets rec aside, or stops the scan in front of it when there is no room.
func (t *taking) keep(rec *storage.Record, key uint64, room int) bool {
	if len(t.aside) >= room+len(t.passed) {
		t.next, t.full = rec.QueueOffset, true
		return false
	}
	if t.order != nil && key == 0 {
		key = messageGroup(rec.Bytes)
		t.order.block(key)
	}
	e := asideEntry{offset: rec.QueueOffset, tagsCode: rec.TagsCode, group: key}
	if t.bySQL() {
		e.learn(rec)
	}
	t.aside = append(t.aside, e)
	return true
}

func (t *taking) add(rec storage.Record, key uint64, attempts int32) {
	t.records = append(t.records, rec)
	if t.order != nil {
		t.keys = append(t.keys, key)
		t.counts = append(t.counts, attempts)
	}
}

// alone reports whether every live member of the group has this request's filter.
func (t *taking) alone() bool {
	t.askOthers()
	for _, x := range t.others {
		if x.Text() != t.q.Filter.Text() || x.Kind() != t.q.Filter.Kind() {
			return false
		}
	}
	return true
}

// bySQL reports whether somebody in the group filters by more than tags.
func (t *taking) bySQL() bool {
	t.askOthers()
	return t.q.Filter.ByProperties() || slices.ContainsFunc(t.others, (*filter.Expression).ByProperties)
}

// askOthers finds the filters of the group's live members. One that can't be read wants
// nothing: its member is refused, too.
func (t *taking) askOthers() {
	if t.othersKnown {
		return
	}
	t.othersKnown = true
	for _, s := range t.p.o.Subscriptions(t.q.Group, t.q.Topic) {
		if x, err := t.p.o.Compile(s.Kind, s.Expression); err == nil {
			t.others = append(t.others, x)
		}
	}
}

// wantedByOthers reports whether a live subscription of the group takes what this
// request's filter refuses.
func (t *taking) wantedByOthers(code int64, p message.Properties) bool {
	t.askOthers()
	for _, x := range t.others {
		if x.ByProperties() && x.Match(p) || !x.ByProperties() && x.MatchTagsCode(code) {
			return true
		}
	}
	return false
}

// deliver makes the taken messages' records and moves the window, all at one moment (P1).
func (t *taking) deliver(wasFull bool) int {
	p, w := t.p, t.w
	w.mu.Lock()
	if w.mu.epoch != t.epoch || w.mu.dropped {
		w.mu.Unlock() // reset, deleted or read by others meanwhile: what was read means nothing
		return 0
	}
	w.mu.epoch++
	if len(t.a.res.Batches) == 0 && len(t.records) > 0 {
		// Invisible times begin now, not when the search began.
		t.a.res.PopTime = max(t.a.res.PopTime, p.now())
	}
	popTime := max(t.a.res.PopTime, t.minPop)
	if popTime > t.a.res.PopTime {
		// The whole answer has one popTime. Batches of other queues have it already, and
		// their names stay unique: it is only later than now.
		if len(t.a.res.Batches) > 0 {
			popTime = t.a.res.PopTime
			t.dropEarlyLocked(popTime)
		}
		t.a.res.PopTime = popTime
	}
	moved := t.next != w.mu.next || len(t.passed)+len(t.aside) > 0
	if t.next != w.mu.next {
		w.mu.next, w.mu.nextDirty = t.next, true
	}
	for i := range t.learned {
		if at, there := w.asideAtLocked(t.learned[i].offset); there {
			w.mu.aside[at].know(&t.learned[i])
		}
	}
	w.takeAsideLocked(t.passed)
	stuck := w.mu.stuck && t.order != nil // what comes behind is stuck as well
	for _, e := range t.aside {
		w.setAsideLocked(e)
	}
	w.mu.stuck = stuck
	if len(t.records) > 0 {
		p.raiseLastPop(popTime) // before the commit of the records, which holds it, too
		t.recordLocked(popTime)
	}
	w.mu.Unlock()
	if moved {
		p.changed(w, nil)
	}
	if wasFull && len(t.passed) > len(t.aside) {
		t.a.roomAgain = true
	}
	if len(t.aside) > 0 && t.order == nil {
		t.wakeOthers()
	}
	if len(t.records) == 0 {
		return 0
	}
	t.a.res.Batches = append(t.a.res.Batches, Batch{
		RetryFlag: w.flag, QueueID: w.key.queue, StartOffset: t.records[0].QueueOffset,
		Records: t.records, Attempts: t.counts,
	})
	return len(t.records)
}

// dropEarlyLocked leaves what can't be delivered under popTime, since it was delivered
// under that or a later one, for the next request.
func (t *taking) dropEarlyLocked(popTime int64) {
	late := make(map[int64]bool)
	for _, e := range t.w.mu.aside {
		if e.lastPop >= popTime {
			late[e.offset] = true
		}
	}
	kept, keys, counts := t.records[:0:0], t.keys[:0:0], t.counts[:0:0]
	for i, rec := range t.records {
		if late[rec.QueueOffset] {
			continue
		}
		kept = append(kept, rec)
		if t.order != nil {
			keys, counts = append(keys, t.keys[i]), append(counts, t.counts[i])
		}
	}
	t.records, t.keys, t.counts = kept, keys, counts
	t.passed = slices.DeleteFunc(t.passed, func(o int64) bool { return late[o] })
}

// recordLocked makes one record per block of 64 offsets, and per message group when
// ordered.
func (t *taking) recordLocked(popTime int64) {
	w, q := t.w, t.q
	var r *record
	for i := range t.records {
		off := t.records[i].QueueOffset
		if r == nil || off&^63 != r.base || t.order != nil && (t.keys[i] != r.more.group || t.counts[i] != r.more.attempts) {
			t.p.startLocked(w, r)
			r = &record{
				w: w, base: off &^ 63, first: uint8(off & 63), popTime: popTime,
				invisible: q.Invisible, heapPos: -1, holder: t.p.holders.use(q.Holder),
			}
			if q.AutoRenew && q.Holder != "" {
				r.flags |= flagRenew
			}
			if t.order != nil {
				r.more = &recordMore{group: t.keys[i], attempts: t.counts[i], attempt: q.AttemptID}
			}
		}
		r.live |= 1 << (off & 63)
	}
	t.p.startLocked(w, r)
}

// startLocked puts a finished record in flight.
func (p *Popper) startLocked(w *window, r *record) {
	if r == nil {
		return
	}
	w.addLocked(r)
	if r.more != nil && r.more.group != 0 {
		w.busyLocked(r.more.group, bits.OnesCount64(r.live))
	}
	p.due.set(r, r.popTime+r.invisible)
}

func (p *Popper) raiseLastPop(t int64) {
	for last := p.lastPop.Load(); t > last && !p.lastPop.CompareAndSwap(last, t); {
		last = p.lastPop.Load()
	}
}

// wakeOthers lets members look again for whom something was set aside.
func (t *taking) wakeOthers() {
	t.q.s.version.Add(1)
	if t.p.o.LongPoll == nil {
		return
	}
	for _, e := range t.aside {
		t.p.o.LongPoll.Arrived(longpoll.Arrival{Topic: t.q.Topic, QueueID: t.w.key.queue, Offset: math.MaxInt64, TagsCode: e.tagsCode})
	}
}

// foreign reports whether a message of a v1 retry topic is not for q: the names of two pairs
// of group and topic may be the same, and such a retry topic stays when one of the topics is
// deleted, with what came from it.
func (q *request) foreign(rec *storage.Record) bool {
	if rec.PhysicalOffset < q.born {
		return true
	}
	var m message.Message
	if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
		return false
	}
	origin, ok := m.Properties.Get(message.PropertyOriginGroup)
	return ok && origin != q.Group
}

func priorityFactor(g *group.Config) int32 {
	n, err := strconv.ParseInt(g.Attributes["priority.factor"], 10, 32)
	if err != nil {
		return 100
	}
	return int32(n)
}
