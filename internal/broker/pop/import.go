package pop

import (
	"cmp"
	"slices"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Imported is what another server had left in flight.
type Imported struct {
	Messages int // in flight from now on, each due at its own time
	Unread   int // entries that could not be made sense of
}

// processedSlack is how far out of order the timer of another server may have been.
const processedSlack = 60_000

// Import takes over what Apache RocketMQ had in flight when it stopped, see checkpoint.go.
// The store must be open, the consumer offsets those of that server, and no request
// accepted yet. known tells whether a group exists; what belongs to a group or a topic that
// is gone is gone. It is committed when Import returns; importing twice changes nothing.
func (p *Popper) Import(known func(group string) bool) (Imported, error) {
	found := p.scanCheckpoints()
	out := Imported{Unread: found.unread}
	all := make([]*checkpoint, 0, len(found.open))
	for _, c := range found.open {
		all = append(all, c)
	}
	// Where a message is in two of them the later one counts.
	slices.SortFunc(all, func(a, b *checkpoint) int {
		return cmp.Or(cmp.Compare(a.PopTime, b.PopTime), cmp.Compare(a.Start, b.Start))
	})
	for _, c := range all {
		if _, ok := p.o.Topic(c.Topic); ok && known(c.Group) {
			out.Messages += p.adopt(c)
		}
	}
	answered := make(chan error, 1)
	p.afterCommit(func(err error) { answered <- err })
	return out, <-answered
}

func (p *Popper) scanCheckpoints() *checkpoints {
	s := &checkpoints{reviveTopic: reviveTopicOf(p.o.Broker.Get().BrokerClusterName),
		open: make(map[checkpointKey]*checkpoint), processed: make(map[int32]int64)}
	queues := int32(8)
	if t, ok := p.o.Topic(s.reviveTopic); ok {
		queues = t.ReadQueues
	}
	committed := make([]int64, queues)
	for q := range queues {
		committed[q] = -1
		if off, ok := p.o.Offsets.Query(names.ReviveGroup, s.reviveTopic, q); ok {
			committed[q] = off
			if m, ok := p.messageAt(s.reviveTopic, q, off); ok {
				s.processed[q] = m.StoreTimestamp - processedSlack
			}
		}
	}
	end := p.o.Store.MaxOffset(names.WheelTimer, 0)
	p.walk(names.WheelTimer, 0, p.o.Store.MinOffset(names.WheelTimer, 0), end, s.fromWheel)
	for q := range queues {
		from := p.stepBack(s.reviveTopic, q, committed[q], s.processed[q])
		p.walk(s.reviveTopic, q, from, p.o.Store.MaxOffset(s.reviveTopic, q), func(m *message.Message) {
			s.fromRevive(m, m.QueueOffset <= committed[q])
		})
	}
	return s
}

// stepBack is an offset at or before which everything in a revive queue is older than time.
func (p *Popper) stepBack(topic string, queue int32, from, time int64) int64 {
	low := max(p.o.Store.MinOffset(topic, queue), 0)
	for step := int64(1024); from > low; step *= 2 {
		from = max(from-step, low)
		if m, ok := p.messageAt(topic, queue, from); ok && m.StoreTimestamp < time-processedSlack {
			break
		}
	}
	return max(from, low)
}

func (p *Popper) messageAt(topic string, queue int32, offset int64) (m message.Message, ok bool) {
	p.walk(topic, queue, offset, offset+1, func(found *message.Message) { m, ok = *found.Clone(), true })
	return m, ok
}

// walk reads the messages of a queue from one offset to before another.
func (p *Popper) walk(topic string, queue int32, from, to int64, each func(*message.Message)) {
	for from < to {
		res := p.o.Store.Read(storage.ReadRequest{Topic: topic, QueueID: queue, Offset: from,
			MaxMessages: int(min(to-from, 1024)), MaxBytes: 4 << 20})
		next := max(res.Next, from)
		if res.Status == storage.OffsetTooSmall || res.Status == storage.MessageWasRemoved {
			next = max(next, res.Min)
		}
		for i := range res.Records {
			var m message.Message
			if _, err := message.DecodeStored(res.Records[i].Bytes, &m); err == nil {
				each(&m)
			}
			next = max(next, res.Records[i].QueueOffset+1)
		}
		res.Release()
		if next == from {
			return
		}
		from = next
	}
}

// adopt puts what is left of a check point in flight. Messages at the consumer offset or
// behind it are read again anyway.
func (p *Popper) adopt(c *checkpoint) int {
	offsets := c.outstanding()
	if len(offsets) == 0 {
		return 0
	}
	s, flag := p.subjectOf(c.Group, c.Topic)
	w := p.windowOf(s, flag, c.Queue)
	if !w.started() {
		p.begin(w, p.start(w, InitMin))
	}
	low := p.o.Store.MinOffset(c.Topic, c.Queue)
	w.mu.Lock()
	defer p.changed(w, nil)
	defer w.mu.Unlock()
	slices.Sort(offsets)
	n := 0
	var r *record
	for _, off := range slices.Compact(offsets) {
		if off < low || off >= w.mu.next {
			continue
		}
		if known := w.findLocked(off); known != nil {
			if known.popTime >= c.PopTime {
				continue
			}
			p.releaseLocked(w, known, 1<<(off&63))
			n--
		}
		if r == nil || off&^63 != r.base {
			p.startLocked(w, r)
			r = newRecord(w, off, c.PopTime, c.Invisible)
			if c.Suspend {
				r.flags |= flagSuspend
			}
		}
		r.live |= 1 << (off & 63)
		n++
	}
	p.startLocked(w, r)
	return n
}

// subjectOf finds whose queues a real topic of a group belongs to.
func (p *Popper) subjectOf(group, topic string) (*subject, byte) {
	if origin, ok := names.OriginTopic(topic, group); ok {
		s := p.subject(subjectKey{group, origin})
		for flag, name := range s.topic {
			if name == topic {
				return s, byte(flag)
			}
		}
	}
	return p.subject(subjectKey{group, topic}), 0
}
