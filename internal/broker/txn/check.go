package txn

import (
	"container/heap"
	"strconv"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/message"
)

const (
	// lookFirst is when a half message is looked at for when it is to be asked about. Most are
	// decided by then.
	lookFirst = time.Second
	// burst is how many are asked about at once, burstBytes how much they may be, about, and
	// burstPause what lies between two bursts: a producer that comes back to a hundred
	// thousand open ones is not flooded, nor is its connection cut for what it has to take.
	burst      = 1000
	burstBytes = 4 << 20
	burstPause = 100 * time.Millisecond
)

// Checker is a channel whose producer can be asked about a half message.
type Checker interface {
	// CheckTransaction asks; it must not block. An error says that the producer can't be asked.
	CheckTransaction(c Check) error
}

// Check is the question what became of a half message.
type Check struct {
	Topic, Group           string
	QueueOffset, LogOffset int64 // as the producer knows them
	UniqueID               string
	OffsetID               string
	Record                 []byte // of the message, in its own topic; may be kept
}

func (t *Txn) lookAfter() time.Duration {
	return min(lookFirst, time.Duration(t.o.Broker.Get().TransactionTimeOut)*time.Millisecond)
}

func (t *Txn) interval() int64 { return t.o.Broker.Get().TransactionCheckInterval }

// look finds out about half messages that are open for longer than most.
func (t *Txn) look() { t.lookUntil(t.o.Clock.NowMilli()) }

// lookAtAll is for who counts.
func (t *Txn) lookAtAll() { t.lookUntil(1<<63 - 1) }

func (t *Txn) lookUntil(now int64) {
	after := t.lookAfter()
	for {
		t.mu.Lock()
		next := t.mu.fresh.next(after)
		if next == 0 || next > now {
			t.mu.Unlock()
			return
		}
		e := t.mu.fresh.pop()
		physical, size := e.physical, e.size
		t.mu.Unlock()
		p, ok := t.o.Store.PropertiesAt(physical, size)
		t.mu.Lock()
		if !e.gone {
			t.lookedLocked(e, p, ok)
		}
		t.mu.Unlock()
	}
}

func (t *Txn) lookedLocked(e *entry, p message.Properties, ok bool) {
	if !ok {
		t.o.Log.Error("a half message can't be read", "offset", e.at, "at", e.physical)
	}
	e.topic, _, _ = realPlace(p)
	e.topic, e.group = strings.Clone(e.topic), strings.Clone(p.Value(message.PropertyProducerGroup))
	if n, err := strconv.ParseInt(p.Value(message.PropertyTransactionCheckTimes), 10, 32); err == nil && n > 0 {
		e.checks = max(e.checks, int32(n))
	}
	if e.due == 0 {
		e.due = e.stored + t.immunity(p)
		t.touchLocked(e)
	}
	heap.Push(&t.mu.due, e)
	t.alarm.Earlier(e.due)
}

// immunity is how long a half message is left alone, in milliseconds.
func (t *Txn) immunity(p message.Properties) int64 {
	if text, ok := p.Get(message.PropertyCheckImmunitySeconds); ok {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
			return n * 1000
		}
	}
	return t.o.Broker.Get().TransactionTimeOut
}

// realPlace is where a half message goes when it is committed.
func realPlace(p message.Properties) (topic string, queue int32, ok bool) {
	n, err := strconv.ParseInt(p.Value(message.PropertyRealQueue), 10, 32)
	topic = p.Value(message.PropertyRealTopic)
	return topic, int32(n), topic != "" && err == nil && n >= 0
}

// check asks about what is due at now, one burst.
func (t *Txn) check(now int64) {
	round := &round{producers: make(map[string][]clients.Client), unasked: make(map[string]int)}
	for asked, bytes := 0, 0; ; {
		t.mu.Lock()
		for len(t.mu.due) > 0 && t.mu.due[0].gone {
			heap.Pop(&t.mu.due)
		}
		if len(t.mu.due) == 0 || t.mu.due[0].due > now {
			t.mu.Unlock()
			break
		}
		if asked == burst || bytes >= burstBytes {
			t.mu.Unlock()
			t.alarm.Earlier(now + burstPause.Milliseconds())
			break
		}
		e := t.mu.due[0]
		e.due = now + t.interval()
		heap.Fix(&t.mu.due, 0)
		_, flying := t.mu.flying[e.first]
		was := *e
		t.mu.Unlock()
		if flying {
			continue
		}
		heard := t.checkOne(&was, now, round)
		t.mu.Lock()
		if e.late = !heard; heard {
			asked++
			bytes += int(was.size)
			e.checks++
			t.touchLocked(e)
		}
		t.mu.Unlock()
	}
	t.mu.Lock()
	for group := range round.unasked {
		t.mu.unasked[group] = struct{}{}
	}
	t.mu.Unlock()
	if t.o.Events.Unasked != nil {
		for group, n := range round.unasked {
			t.o.Events.Unasked(group, n)
		}
	}
}

// Joined notes that a producer group has a member again: what it could not be asked about in
// time is due now.
func (t *Txn) Joined(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.mu.unasked[group]; !ok {
		return
	}
	delete(t.mu.unasked, group)
	now := t.o.Clock.NowMilli()
	for _, e := range t.mu.due {
		if e.late && e.group == group {
			e.due = min(e.due, now)
		}
	}
	heap.Init(&t.mu.due)
	t.alarm.Earlier(now)
}

// round is what is known during one pass over what is due.
type round struct {
	producers map[string][]clients.Client
	unasked   map[string]int
}

// checkOne asks about one half message, and reports whether somebody was asked; or gives it
// up when it was asked about often enough, or is too old. A producer group without a member
// uses up no check: who is not there has not been asked.
func (t *Txn) checkOne(e *entry, now int64, r *round) bool {
	switch cfg, ok := t.o.Topic(e.topic); {
	case e.topic != "" && (!ok || e.physical < cfg.Birth && e.origin < cfg.Birth):
		t.drop(e)
		return false
	case e.checks >= t.o.Broker.Get().TransactionCheckMax, now-e.stored > t.o.MaxAge().Milliseconds():
		t.giveUp(e)
		return false
	}
	list, known := r.producers[e.group]
	if !known {
		list = t.o.Producers(e.group)
		r.producers[e.group] = list
	}
	if len(list) == 0 {
		r.unasked[e.group]++
		return false
	}
	h, err := t.read(e.physical)
	if err != nil {
		t.o.Log.Error("a half message can't be read", "offset", e.at, "err", err)
		return false
	}
	c, err := questionOf(h, e)
	if err != nil {
		t.o.Log.Error("a half message can't be shown to its producer", "offset", e.at, "err", err)
		return false
	}
	t.mu.Lock()
	turn := int(t.mu.turn)
	t.mu.turn++
	t.mu.Unlock()
	for i := range list {
		ch, ok := list[(turn+i)%len(list)].Channel.(Checker)
		if ok && ch.CheckTransaction(c) == nil {
			return true
		}
	}
	r.unasked[e.group]++
	return false
}

// questionOf shows a half message as it will be in its own topic.
func questionOf(h *half, e *entry) (Check, error) {
	m := h.message
	c := Check{Topic: h.topic, Group: h.group, QueueOffset: e.first, LogOffset: e.origin, UniqueID: m.UniqueID(), OffsetID: m.OffsetID()}
	if c.LogOffset < 0 {
		c.LogOffset = e.physical
	}
	queueOffset, physical, stored := m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp
	m.Topic, m.QueueID = h.topic, h.queue
	m.Properties = m.Properties.Without(message.PropertySource).With(message.PropertyTransactionCheckTimes, strconv.Itoa(int(e.checks)+1))
	record, err := message.AppendStored(nil, m)
	if err != nil {
		return c, err
	}
	message.Patch(record, queueOffset, physical, stored)
	c.Record = record
	return c, nil
}

// giveUp moves a half message to where somebody may look after it.
func (t *Txn) giveUp(e *entry) {
	h, err := t.read(e.physical)
	if err != nil {
		t.o.Log.Error("a half message can't be read", "offset", e.at, "err", err)
		return
	}
	h.first = e.first
	f, err := t.depart(h, GivenUp, func(error) {})
	if f == nil {
		return // decided meanwhile
	}
	t.o.Publish.GiveUp(h.message, e.checks, sourceOf(GivenUp, e.first), func(err error) {
		t.stored(e.first, f, err)
		switch {
		case err != nil:
			t.o.Log.Warn("a half message that nobody decides could not be moved away; it is tried again", "offset", e.first, "err", err)
		default:
			t.tally.givenUp(h.topic, t.o.Clock.NowMilli())
			if t.o.Events.GivenUp != nil {
				t.o.Events.GivenUp(h.topic, h.group, e.checks)
			}
		}
	})
}

// drop ends a half message whose topic is gone.
func (t *Txn) drop(e *entry) {
	h := &half{message: &message.Message{StoreTimestamp: e.stored}, first: e.first, at: e.at, topic: e.topic}
	f, _ := t.depart(h, RolledBack, func(error) {})
	if f == nil {
		return
	}
	t.o.Log.Info("a half message was dropped: its topic is gone", "offset", e.first, "topic", e.topic)
	t.o.Publish.Op(opBody(e.at), sourceOf(RolledBack, e.first), t.o.Clock.NowMilli(), false, t.opStored(func(err error) { t.stored(e.first, f, err) }))
}
