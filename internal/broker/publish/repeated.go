package publish

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// repeated remembers the sends of a while, by topic and unique id, so that one that comes
// again, because its sender has not seen the answer, is answered with the place of the first
// copy (docs/decisions/0085). What was sent before it was there is looked up in the log.
//
// mu guards all of it and is never held while others are called.
type repeated struct {
	seeds [2]maphash.Seed
	mu    struct {
		sync.Mutex
		since int64 // when it was switched on, ms; 0: it is off
		sends map[sendKey]*sent
		order []*sent // the oldest first, from index head on
		head  int
	}
}

// sendKey stands for a topic and a message's id, or those of a batch. Two different ones have
// the same with a probability of 2^-128, whatever a client makes up: the seeds are random.
type sendKey [2]uint64

// sent is a send that has come in once.
type sent struct {
	key     sendKey
	at      int64 // ms
	queue   int32
	due     int64
	placed  []storage.Placed // nil while the append is under way
	waiting []func([]storage.Placed, error)
}

func (p *Publisher) keyOf(parts ...string) (k sendKey) {
	for i := range k {
		var h maphash.Hash
		h.SetSeed(p.repeated.seeds[i])
		for _, part := range parts {
			h.WriteString(part)
			h.WriteByte(0)
		}
		k[i] = h.Sum64()
	}
	return k
}

// window is how long sends are remembered, in ms; 0 is not at all.
func (p *Publisher) window() int64 {
	window := p.o.Broker.Get().RepeatedSendWindow
	if window == 0 && p.remembering.Load() {
		p.remembering.Store(false)
		p.repeated.forget()
	}
	return window
}

// forget is for when it is switched off.
func (t *repeated) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.since, t.mu.sends, t.mu.order, t.mu.head = 0, nil, nil, 0
}

// firstOf is the completion of a message's first send; nil for one that is repeated, whose
// done is called as the first one's. A consumer's own way to retry keeps the id on purpose.
func (p *Publisher) firstOf(m *message.Message, t *traits, r *Request, window int64, done func(storage.Placed, error)) func(storage.Placed, error) {
	if t.uniqKey == "" || names.IsRetry(m.Topic) || names.IsDeadLetter(m.Topic) {
		return done
	}
	r.UniqKey = append(r.UniqKey[:0], t.uniqKey...)
	r.Due = t.due
	homes := [2]string{m.Topic}
	switch {
	case t.half:
		homes[0], r.Due = names.Half, 0
	case t.level > 0:
		homes[1] = names.Schedule
	case t.due > 0:
		homes[1] = names.WheelTimer
	}
	key := t.uniqKey
	first := p.once(p.keyOf(m.Topic, key), r, window, func(begin, end int64) []storage.Placed {
		for _, home := range homes {
			if at, ok := p.stored(home, m.Topic, key, begin, end); ok {
				return []storage.Placed{at}
			}
		}
		return nil
	}, func(at []storage.Placed, err error) {
		if err != nil {
			done(storage.Placed{}, err)
			return
		}
		done(at[0], nil)
	})
	if first == nil {
		return nil
	}
	return func(at storage.Placed, err error) { first([]storage.Placed{at}, err) }
}

// firstOfBatch is firstOf for a batch: it is repeated when all its ids are.
func (p *Publisher) firstOfBatch(ms []*message.Message, r *Request, window int64, done func([]storage.Placed, error)) func([]storage.Placed, error) {
	topic, keys := ms[0].Topic, make([]string, 0, len(ms)+1)
	for _, m := range ms {
		keys = append(keys, m.Properties.Value(message.PropertyUniqKey))
	}
	return p.once(p.keyOf(append(keys, topic)...), r, window, func(begin, end int64) (all []storage.Placed) {
		for _, key := range keys {
			at, ok := p.stored(topic, topic, key, begin, end)
			if !ok {
				return nil
			}
			all = append(all, at)
		}
		return all
	}, done)
}

// once returns the completion of a send that comes for the first time: it calls done and
// remembers the place. One that is repeated calls done itself, or has the first one call it,
// and returns nil. One that failed was none.
func (p *Publisher) once(key sendKey, r *Request, window int64, look func(begin, end int64) []storage.Placed, done func([]storage.Placed, error)) func([]storage.Placed, error) {
	p.remembering.Store(true)
	t, now := &p.repeated, p.o.NowMilli()
	if t.began(now) && p.o.CatchUp != nil {
		p.o.CatchUp() // so that the keys of what was sent until now can be found
	}
	s, first, young := t.enter(key, r, now, window, int(p.o.Broker.Get().RepeatedSendsKept), done)
	if !first {
		if s != nil {
			done(s.placed, nil)
		}
		return nil
	}
	finish := func(at []storage.Placed, err error) {
		waiting := t.settle(s, at, err)
		done(at, err)
		for _, w := range waiting {
			w(at, err)
		}
	}
	if young {
		if at := look(now-window, now+window); at != nil {
			finish(at, nil)
			return nil
		}
	}
	return finish
}

// began begins to remember, where that was switched on, and reports whether it did.
func (t *repeated) began(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.sends != nil {
		return false
	}
	t.mu.sends, t.mu.since = make(map[sendKey]*sent), now
	return true
}

// enter finds the send of a key, or takes a new one in; r is told where it goes. One that is
// under way is not returned: it calls done, after which r is its owner's again. young: what
// came before it was switched on may still count.
func (t *repeated) enter(key sendKey, r *Request, now, window int64, most int, done func([]storage.Placed, error)) (s *sent, first, young bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.sends == nil { // switched off meanwhile
		t.mu.sends, t.mu.since = make(map[sendKey]*sent), now
	}
	t.drop(now-window, most)
	if s := t.mu.sends[key]; s != nil {
		r.QueueID, r.Due = s.queue, s.due
		if s.placed == nil {
			s.waiting = append(s.waiting, done)
			return nil, false, false
		}
		return s, false, false
	}
	s = &sent{key: key, at: now, queue: r.QueueID, due: r.Due}
	t.mu.sends[key] = s
	t.mu.order = append(t.mu.order, s)
	return s, true, now-t.mu.since < window
}

// settle ends the append of a send and returns who else waits for it.
func (t *repeated) settle(s *sent, at []storage.Placed, err error) []func([]storage.Placed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := s.waiting
	s.waiting = nil
	if err == nil {
		s.placed = at
	} else if t.mu.sends[s.key] == s {
		delete(t.mu.sends, s.key)
	}
	return waiting
}

// drop forgets what is older than a time, and the oldest of more than there may be; mu is
// held. A send that is under way is kept by its append alone from then on.
func (t *repeated) drop(before int64, most int) {
	for t.mu.head < len(t.mu.order) {
		oldest := t.mu.order[t.mu.head]
		if oldest.at >= before && len(t.mu.order)-t.mu.head < most {
			break
		}
		if t.mu.sends[oldest.key] == oldest {
			delete(t.mu.sends, oldest.key)
		}
		t.mu.order[t.mu.head] = nil
		t.mu.head++
	}
	if t.mu.head > len(t.mu.order)/2 {
		t.mu.order = slices.Delete(t.mu.order, 0, t.mu.head)
		t.mu.head = 0
	}
}

// stored finds the first copy of a message that was sent to a topic, in the topic where it
// lies.
func (p *Publisher) stored(home, topic, key string, begin, end int64) (storage.Placed, bool) {
	if home == "" || p.o.Find == nil {
		return storage.Placed{}, false
	}
	// With an error there are those that were found until then: rather twice than not at all.
	found, _ := p.o.Find(home, key, 0, begin, end)
	for i := len(found) - 1; i >= 0; i-- { // the newest is the first of them
		var m message.Message
		if _, err := message.DecodeStored(found[i].Bytes, &m); err != nil || m.UniqueID() != key {
			continue
		}
		if home != topic && m.Properties.Value(message.PropertyRealTopic) != topic {
			continue
		}
		return storage.Placed{PhysicalOffset: m.PhysicalOffset, QueueOffset: m.QueueOffset, StoreTimestamp: m.StoreTimestamp,
			QueueID: m.QueueID, Size: int32(len(found[i].Bytes))}, true
	}
	return storage.Placed{}, false
}
