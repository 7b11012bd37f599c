package pop

import (
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
	missed    bool // a read failed, or what was read had been moved meanwhile
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
	if q.Peer.Gone() {
		return a, ErrGone
	}
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
	s.steps = plan(s.steps[:0], q.planInput(cfg, a.reach, s.counter))
	s.counter++
	p.initialize(q, a.reach)
	a.res.PopTime = p.now() // not earlier than the windows that were made now
	if q.ordered && q.AttemptID != "" && p.repeat(q, &a) {
		return a, nil
	}
	found, again := 0, 0
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
		if found += n; st.flag != receipt.FlagNormal {
			again += n
		}
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
			f(q.Group, q.Topic, found, again)
		}
	}
	a.res.Missed = found == 0 && a.missed
	a.res.More = found == 0 && a.more && !a.missed
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
	w.mu.idle = false
	full := len(w.mu.aside) >= t.p.o.SetAside
	if w.mu.dropped {
		w.mu.Unlock()
		t.a.missed = true
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
			t.sift(res, room, refuse != nil)
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
				t.a.missed = true // the read failed
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
	if f := t.p.o.Events.Skipped; f != nil && to > from {
		f(t.q.Group, t.w.key.topic, t.w.key.queue, from, to)
	}
	if f := t.p.o.Events.Corrected; f != nil {
		f(t.q.Group, t.w.key.topic, t.w.key.queue, from, to)
	}
	t.next = to
	return true
}

// sift goes through records read from the queue: each is delivered, set aside, or passed.
// asked says that the store has asked the filter already.
func (t *taking) sift(res storage.ReadResult, room int, asked bool) {
	asked = asked || t.q.Filter.MatchesAll()
	plain := t.order == nil && asked && t.w.flag != receipt.FlagRetryV1
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
		case !asked && !t.q.Filter.MatchRecord(rec.TagsCode, rec.Bytes):
			if p, _ := message.PropertiesOf(rec.Bytes); !t.wantedByOthers(rec.TagsCode, p) {
				break
			}
			if !t.keep(rec, 0, room) {
				return
			}
		case t.order != nil:
			key := t.w.messageGroup(rec.Bytes)
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

func (t *taking) add(rec storage.Record, key uint64, attempts int32) {
	t.records = append(t.records, rec)
	if t.order != nil {
		t.keys = append(t.keys, key)
		t.counts = append(t.counts, attempts)
	}
}
