package pop

import (
	"hash/fnv"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// ordering decides which messages of an ordered queue an answer may have. The unit is the
// message group: a group with a message in flight, or with an earlier one left behind in
// this pass, gives nothing; the others flow. Messages without a group form one per queue.
type ordering struct {
	w       *window
	one     bool // at most one message of each group
	blocked map[uint64]bool
	chosen  uint64 // without one: the only group of this answer
	stopped bool
	// trusting: what is set aside was not looked at, since all of it was stuck.
	trusting bool
	refused  map[uint64]bool // see refuse
}

func newOrdering(w *window, one bool) *ordering {
	return &ordering{w: w, one: one, blocked: make(map[uint64]bool)}
}

// admit reports whether a message of group key may be delivered now.
func (o *ordering) admit(key uint64) bool {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	return o.admitLocked(key)
}

func (o *ordering) admitLocked(key uint64) bool {
	switch {
	case o.trusting && !o.w.mu.stuck:
		return false // what is set aside may go first now: the next request looks
	case o.blocked[key] || o.w.mu.busy[key] > 0:
		return false
	case o.one:
		o.blocked[key] = true
		return true
	case o.chosen == 0 || o.chosen == key:
		o.chosen = key
		return true
	}
	return false
}

// block keeps later messages of key behind one that was not delivered.
func (o *ordering) block(key uint64) { o.blocked[key] = true }

// refuse is told that a message of key that was admitted is not delivered after all. first
// says that nothing of this group is in the answer.
func (o *ordering) refuse(key uint64, first bool) {
	o.block(key)
	if o.refused == nil {
		o.refused = make(map[uint64]bool)
	}
	o.refused[key] = true
	if first && o.chosen == key {
		o.chosen = 0
	}
}

// ends reports whether an answer of one group ends before a message of key.
func (o *ordering) ends(key uint64) bool {
	return !o.one && o.chosen != 0 && o.chosen != key
}

// busyLocked counts n more (or, negative, fewer) messages of a group in flight, and
// reports whether the group became free.
func (w *window) busyLocked(group uint64, n int) bool {
	if w.mu.busy == nil {
		w.mu.busy = make(map[uint64]int)
	}
	w.mu.busy[group] += n
	if w.mu.busy[group] <= 0 {
		delete(w.mu.busy, group)
		w.mu.stuck = false
		return true
	}
	return false
}

// messageGroup is that of a record in w's queue. A light queue is one: its order is that of
// all its messages.
func (w *window) messageGroup(record []byte) uint64 {
	if names.IsLight(w.key.topic) {
		return 1
	}
	return messageGroup(record)
}

// messageGroup is a number for the message group of a stored record, never 0: 1 for
// messages without a group. Two groups with one number only wait for each other.
func messageGroup(record []byte) uint64 {
	var m message.Message
	if _, err := message.DecodeStored(record, &m); err != nil {
		return 1
	}
	name, ok := m.Properties.Get(message.PropertyShardingKey)
	if !ok || name == "" {
		return 1
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64() | 2
}

// repeat gives a request that names an earlier attempt what that attempt got, where it is
// still in flight: the client never saw the answer.
func (p *Popper) repeat(q *request, a *attempt) bool {
	if !names.IsLite(q.Topic) && !q.s.attemptSeen(q.AttemptID) { // the search of one queue is short
		return false
	}
	for _, st := range q.s.steps {
		w := p.windowOf(q.s, st.flag, st.queue)
		t := taking{p: p, q: q, w: w, a: a, want: q.Max, order: newOrdering(w, q.OnePerGroup)}
		entries, popTime := w.attemptOf(q.AttemptID, a.res.PopTime)
		if len(entries) == 0 || len(a.res.Batches) > 0 && popTime != a.res.PopTime {
			continue
		}
		t.fromAside(entries)
		if len(t.records) == 0 {
			continue
		}
		a.res.Status, a.res.PopTime = Found, popTime
		a.res.Batches = append(a.res.Batches, Batch{
			RetryFlag: w.flag, QueueID: w.key.queue, StartOffset: t.records[0].QueueOffset,
			Records: t.records, Attempts: t.counts,
		})
	}
	return len(a.res.Batches) > 0
}
