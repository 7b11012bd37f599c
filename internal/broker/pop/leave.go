package pop

import (
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// A group that goes over from POP to pulling a topic reads two places from then on: the
// topic, from the consumer offset, and its own retry topic. So whatever POP still has goes
// to that retry topic: at once what nobody holds (set aside, or waiting in the POP retry
// topics), and what is in flight as soon as it lapses; until then its holder may ack it.
// The consumer offset goes where POP would have read on.
//
// Members learn of the change one after the other, and one that has not yet may go on to
// pop for a while. So leaving is not a moment but a state, which Options.Left tells of:
// lapses look at it, and each attempt clears up after itself.

// Leave clears up after a group that pulls a topic from now on. It returns at once.
func (p *Popper) Leave(group, topic string) {
	q := &request{
		Request: Request{Group: group, Topic: topic, QueueID: -1, Max: MaxMessages},
		s:       p.subject(subjectKey{group, topic}),
		last:    true,
		leave:   true,
		done:    func(Result, error) {},
	}
	if t, ok := p.o.Topic(topic); ok {
		q.ordered = t.MessageType() == "FIFO"
	}
	p.ready.put(job{q: q})
}

// leave moves out what nobody holds. The caller holds q's subject.
func (p *Popper) leave(q *request, a *attempt) {
	if q.ordered {
		p.leaveOrdered(q, a)
		return
	}
	for queue := range a.reach[receipt.FlagNormal] {
		w := p.windowOf(q.s, receipt.FlagNormal, queue)
		if !w.started() {
			continue // it was never popped
		}
		p.moveOut(w)
		p.handOver(w)
	}
	for flag := receipt.FlagRetryV1; flag <= receipt.FlagRetryV2; flag++ {
		for queue := range a.reach[flag] {
			w := p.windowOf(q.s, flag, queue)
			if !w.started() {
				p.begin(w, p.start(w, InitMin))
			}
			p.moveOut(w)
			for more := true; more; {
				more = p.moveOn(q, w)
			}
		}
	}
}

// leaveOrdered gives up what POP knows of ordered queues: their order allows no detour, so
// a group that pulls repeats from the lowest message that is not done.
func (p *Popper) leaveOrdered(q *request, a *attempt) {
	for queue := range a.reach[receipt.FlagNormal] {
		w := p.windowOf(q.s, receipt.FlagNormal, queue)
		if !w.started() {
			continue
		}
		w.mu.Lock()
		low := w.lowestLocked()
		p.emptyLocked(w)
		w.mu.next, w.mu.floor, w.mu.nextDirty = low, p.fresh(), true
		w.mu.Unlock()
		p.changed(w, nil)
		p.handOver(w)
	}
}

// handOver makes the consumer offset go on where POP has stopped.
func (p *Popper) handOver(w *window) {
	w.mu.Lock()
	next := w.mu.next
	w.mu.Unlock()
	if p.o.Offsets != nil {
		p.o.Offsets.Advance(w.key.group, w.key.topic, w.key.queue, next)
	}
}

// moveOut makes what is set aside lapse at once.
func (p *Popper) moveOut(w *window) {
	w.mu.Lock()
	if len(w.mu.aside) == 0 || w.mu.dropped {
		w.mu.Unlock()
		return
	}
	popTime := p.now()
	offsets := make([]int64, 0, len(w.mu.aside))
	for _, e := range w.mu.aside {
		offsets = append(offsets, e.offset)
		popTime = max(popTime, e.lastPop+1)
	}
	w.mu.epoch++
	w.takeAsideLocked(offsets)
	p.lapsingLocked(w, offsets, popTime)
	w.mu.Unlock()
	p.changed(w, nil)
}

// moveOn makes the next unread messages of a retry topic lapse at once, and reports whether
// there may be more.
func (p *Popper) moveOn(q *request, w *window) bool {
	var a attempt
	a.res = Result{PopTime: p.now()}
	t := taking{p: p, q: q, w: w, a: &a, want: MaxMessages, threshold: -1}
	defer a.res.Release()
	w.mu.Lock()
	t.epoch, t.next = w.mu.epoch, w.mu.next
	w.mu.Unlock()
	t.fromQueue(0)
	w.mu.Lock()
	defer p.changed(w, nil)
	defer w.mu.Unlock()
	if w.mu.epoch != t.epoch || w.mu.dropped || t.next == w.mu.next {
		return false
	}
	w.mu.epoch++
	w.mu.next, w.mu.nextDirty = t.next, true
	offsets := make([]int64, 0, len(t.records))
	for i := range t.records {
		offsets = append(offsets, t.records[i].QueueOffset)
	}
	p.lapsingLocked(w, offsets, a.res.PopTime)
	return true
}

// lapsingLocked puts messages in flight that nobody gets: they are due at once, and that
// counts as no attempt.
func (p *Popper) lapsingLocked(w *window, offsets []int64, popTime int64) {
	var r *record
	for _, off := range offsets {
		if r == nil || off&^63 != r.base {
			p.startLocked(w, r)
			r = newRecord(w, off, popTime, 0)
			r.flags = flagSuspend
		}
		r.live |= 1 << (off & 63)
	}
	p.startLocked(w, r)
}

// left reports whether w's group pulls the topic, so that lapses go to its retry topic.
func (p *Popper) left(k windowKey) bool {
	if p.o.Left == nil {
		return false
	}
	topic := k.topic
	if origin, ok := names.OriginTopic(topic, k.group); ok {
		topic = origin
	}
	return p.o.Left(k.group, topic)
}
