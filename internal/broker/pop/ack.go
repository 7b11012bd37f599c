package pop

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Delivery names one delivery: what a receipt says.
type Delivery struct {
	Group     string
	Topic     string // the real one
	QueueID   int32
	Offset    int64
	PopTime   int64
	Invisible int64
}

// DeliveryOf is the delivery that a receipt for (group, topic) names. topic may be the
// consumed topic or already the real one.
func DeliveryOf(group, topic string, h receipt.Handle) Delivery {
	if !strings.HasPrefix(topic, names.RetryPrefix) {
		topic = h.RealTopic(topic, group)
	}
	return Delivery{Group: group, Topic: topic, QueueID: h.QueueID, Offset: h.Offset, PopTime: h.PopTime, Invisible: h.InvisibleTime}
}

// Ack ends a delivery. done gets nil once the message is done for good, and nothing less
// than a lost disk brings it back; or ErrStale, ErrExpired, ErrIllegal, and the call had no
// effect.
func (p *Popper) Ack(group, topic string, h receipt.Handle, done func(error)) {
	p.AckDelivery(DeliveryOf(group, topic, h), done)
}

// AckDelivery is Ack for a delivery that was named otherwise.
func (p *Popper) AckDelivery(d Delivery, done func(error)) {
	w := p.lockWindow(nil, windowKey{d.Group, d.Topic, d.QueueID})
	if w == nil {
		done(ErrIllegal)
		return
	}
	now := p.now()
	v, err := p.ackLocked(w, d, now)
	v.relieved = err == nil && p.relieveLocked(w)
	w.mu.Unlock()
	if err != nil {
		done(err)
		return
	}
	p.changed(w, done)
	p.settleAcks(w, v)
}

// ackOutcome is what acks of one window have done.
type ackOutcome struct {
	ended int  // messages that were in flight
	freed bool // a message group of an ordered queue may go on
	// relieved: requests that were refused because of what was in flight may come back.
	relieved bool
}

func (p *Popper) settleAcks(w *window, v ackOutcome) {
	if f := p.o.Events.Acked; f != nil && v.ended > 0 {
		f(w.key.group, w.key.topic, v.ended)
	}
	if v.freed {
		p.lookAgain(w)
	}
	if v.relieved {
		p.relieved(w)
	}
}

// BatchAck acknowledges many messages of one queue that were popped together: bit i of
// Bits, little-endian as the protocol has it, stands for offset StartOffset+i.
type BatchAck struct {
	Group       string
	Topic       string // the real one
	QueueID     int32
	StartOffset int64
	PopTime     int64
	Invisible   int64
	Bits        []byte
}

// AckBatch ends many deliveries in one commit. done gets one error per message in the order
// of the handles, nil for those that are done.
func (p *Popper) AckBatch(group, topic string, handles []receipt.Handle, done func([]error)) {
	errs := make([]error, len(handles))
	var w *window
	now := p.now()
	any := false
	for i, h := range handles {
		d := DeliveryOf(group, topic, h)
		if w = p.lockWindow(w, windowKey{d.Group, d.Topic, d.QueueID}); w == nil {
			errs[i] = ErrIllegal
			continue
		}
		v, err := p.ackLocked(w, d, now)
		v.relieved = err == nil && p.relieveLocked(w)
		w.mu.Unlock()
		if errs[i] = err; err != nil {
			continue
		}
		any = true
		p.changed(w, nil)
		p.settleAcks(w, v)
	}
	if !any {
		done(errs)
		return
	}
	p.afterCommit(func(err error) {
		if err != nil {
			for i := range errs {
				if errs[i] == nil {
					errs[i] = err
				}
			}
		}
		done(errs)
	})
}

// AckBits ends the deliveries of all entries in one commit. done gets how many messages are
// done and the first error of the others.
func (p *Popper) AckBits(entries []BatchAck, done func(acked int, err error)) {
	now := p.now()
	total := 0
	var first error
	for i := range entries {
		n, err := p.ackBits(&entries[i], now)
		total += n
		if first == nil {
			first = err
		}
	}
	if total == 0 {
		done(0, first)
		return
	}
	p.afterCommit(func(err error) {
		if err != nil {
			done(0, err)
			return
		}
		done(total, first)
	})
}

func (p *Popper) ackBits(e *BatchAck, now int64) (n int, first error) {
	w := p.lockWindow(nil, windowKey{e.Group, e.Topic, e.QueueID})
	if w == nil {
		return 0, ErrIllegal
	}
	var all ackOutcome
	for i, b := range e.Bits {
		for ; b != 0; b &= b - 1 {
			d := Delivery{
				Group: e.Group, Topic: e.Topic, QueueID: e.QueueID, PopTime: e.PopTime, Invisible: e.Invisible,
				Offset: e.StartOffset + int64(i)*8 + int64(bits.TrailingZeros8(b)),
			}
			v, err := p.ackLocked(w, d, now)
			all.ended += v.ended
			all.freed = all.freed || v.freed
			if err == nil {
				n++
			} else if first == nil {
				first = err
			}
		}
	}
	all.relieved = n > 0 && p.relieveLocked(w)
	w.mu.Unlock()
	if n > 0 {
		p.changed(w, nil)
	}
	p.settleAcks(w, all)
	return n, first
}

// ackLocked decides what an ack of d gets, and ends the delivery where that is nil.
func (p *Popper) ackLocked(w *window, d Delivery, now int64) (ackOutcome, error) {
	r, err := p.judgeLocked(w, d, now)
	if err != nil || r == nil {
		return ackOutcome{}, err
	}
	return ackOutcome{ended: 1, freed: p.releaseLocked(w, r, 1<<(d.Offset&63))}, nil
}

// judgeLocked is the table of answers. It returns the record in which d is in flight and
// may be ended or changed; nil without an error means that the message was acked under
// this name before.
func (p *Popper) judgeLocked(w *window, d Delivery, now int64) (*record, error) {
	switch {
	case w.mu.dropped, d.Offset < 0, d.PopTime > max(now, p.lastPop.Load()):
		return nil, ErrIllegal
	}
	if r := w.findLocked(d.Offset); r != nil {
		switch {
		case r.popTime > d.PopTime:
			return nil, ErrStale
		case r.popTime < d.PopTime:
			return nil, ErrIllegal
		case r.flags&flagClaimed != 0, r.due <= now && !p.renewableLocked(r, now):
			return nil, ErrExpired
		case r.more != nil && r.more.appended&(1<<(d.Offset&63)) != 0:
			return nil, ErrExpired // its dead letter is on its way
		}
		return r, nil
	}
	if _, aside := w.asideAtLocked(d.Offset); aside {
		return nil, ErrExpired
	}
	switch {
	case d.Offset >= w.mu.next:
		return nil, ErrExpired // its delivery was lost with the end of an earlier process
	case d.PopTime < w.mu.floor:
		return nil, ErrExpired // how it ended is not known any more
	case d.PopTime+d.Invisible <= now:
		return nil, ErrExpired
	}
	if e, ok := w.mu.moved[d.Offset]; ok && d.PopTime <= e.popTime { // a later delivery was acked
		return nil, ErrExpired
	}
	return nil, nil
}

// releaseLocked takes messages of r out of flight for good, and reports whether a message
// group became free.
func (p *Popper) releaseLocked(w *window, r *record, mask uint64) (freed bool) {
	mask &= r.live
	if r.more != nil && r.more.group != 0 {
		freed = w.busyLocked(r.more.group, -bits.OnesCount64(mask))
	}
	if w.clearLocked(r, mask) {
		p.due.remove(r)
		p.holders.drop(r.holder)
		r.holder = 0
	}
	return freed
}

// lookAgain wakes a request that waits for w's queue: something below next became visible.
func (p *Popper) lookAgain(w *window) {
	w.mu.Lock()
	s, flag := w.subject, w.flag
	some := len(w.mu.aside) > 0
	next := w.mu.next
	w.mu.Unlock()
	if f := p.o.LiteFree; f != nil && names.IsLite(w.key.topic) && (some || p.o.Store.MaxOffset(w.key.topic, w.key.queue) > next) {
		f(w.key.group, w.key.topic)
	}
	if s == nil {
		return
	}
	// Even if nothing is set aside yet: a request may be about to set aside what it found
	// behind the order that has just become free, and then wait.
	s.version.Add(1)
	if some {
		p.wakeOne(s, flag, w.key.queue)
	}
}

// wakeOne wakes a request that waits for a queue of s.
func (p *Popper) wakeOne(s *subject, flag byte, queue int32) {
	if p.o.LongPoll == nil {
		return
	}
	k := longpoll.Key{Topic: s.topic[flag], QueueID: queue, Group: s.key.group}
	if flag != receipt.FlagNormal {
		k.QueueID = longpoll.AllQueues // as requests for any queue wait for it
	}
	p.o.LongPoll.WakeNext(k)
}

// Changed is the outcome of a change of the invisible time: the name of the delivery from
// now on.
type Changed struct {
	PopTime   int64
	Invisible int64
}

// ChangeInvisible makes a delivery lapse invisible milliseconds from now, under a new name;
// the old one is stale from then on. Zero gives the message back at once. A suspended
// delivery's lapse does not count as an attempt.
func (p *Popper) ChangeInvisible(group, topic string, h receipt.Handle, invisible int64, suspend bool, done func(receipt.Handle, error)) {
	d := DeliveryOf(group, topic, h)
	p.Change(d, invisible, suspend, func(c Changed, err error) {
		if err == nil {
			h.StartOffset, h.PopTime, h.InvisibleTime = h.Offset, c.PopTime, c.Invisible
		}
		done(h, err)
	})
}

// maxInvisible is the longest invisible time in milliseconds, thousands of years. A pop
// time plus this is far from the end of the numbers, where it would lapse at once.
const maxInvisible = 1 << 50

func boundInvisible(ms int64) int64 { return min(max(ms, 0), maxInvisible) }

// Change is ChangeInvisible for a delivery that was named otherwise.
func (p *Popper) Change(d Delivery, invisible int64, suspend bool, done func(Changed, error)) {
	w := p.lockWindow(nil, windowKey{d.Group, d.Topic, d.QueueID})
	if w == nil {
		done(Changed{}, ErrIllegal)
		return
	}
	invisible = boundInvisible(invisible)
	now := p.now()
	r, err := p.judgeLocked(w, d, now)
	if err == nil && r == nil {
		err = ErrExpired // acked already: there is nothing to change
	}
	if err != nil {
		w.mu.Unlock()
		done(Changed{}, err)
		return
	}
	c := Changed{PopTime: max(now, r.popTime+1), Invisible: invisible}
	p.splitLocked(w, r, d.Offset, c, suspend)
	w.mu.Unlock()
	p.changed(w, func(err error) { done(c, err) })
}

// splitLocked moves one message of r into a record of its own under a new name. Whoever
// says when it is to lapse means it, so automatic renewal ends.
func (p *Popper) splitLocked(w *window, r *record, offset int64, c Changed, suspend bool) {
	own := newRecord(w, offset, c.PopTime, c.Invisible)
	own.live, own.holder = 1<<(offset&63), p.holders.again(r.holder)
	if suspend {
		own.flags |= flagSuspend
	}
	until := r.claimsUntil()
	if r.more != nil && r.more.group != 0 {
		own.extra().group, own.more.attempts = r.more.group, r.more.attempts
	}
	if until > c.PopTime+c.Invisible {
		own.extra().until = until
	}
	p.releaseLocked(w, r, own.live)
	p.startLocked(w, own)
}

// attemptOf lists what an earlier attempt of the same request holds in w and when it was
// popped.
func (w *window) attemptOf(id string, now int64) (entries []asideEntry, popTime int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.mu.blocks {
		for _, r := range b.recs {
			if r.more == nil || r.more.attempt != id || r.due <= now || r.flags&flagClaimed != 0 {
				continue
			}
			for m := r.live &^ r.more.appended; m != 0; m &= m - 1 {
				entries = append(entries, asideEntry{offset: r.offset(bits.TrailingZeros64(m)), group: r.more.group, attempts: r.more.attempts})
			}
			popTime = r.popTime
		}
	}
	slices.SortFunc(entries, func(a, b asideEntry) int { return int(a.offset - b.offset) })
	return entries, popTime
}
