package storage

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Check walks log, queues and index and reports the first contradiction: every record is
// sound and follows the one before, store times of this process never run backwards, each record is in
// its queue and under its keys, the queues hold nothing else, and behind the ends all is
// zero. Nothing may be appended meanwhile.
func (e *Engine) Check() error {
	e.settle()
	if done, end := e.log.Done(), e.log.End(); done != end {
		return fmt.Errorf("check: the log ends at %d and is dispatched up to %d", end, done)
	}
	c := checker{e: e, last: e.begunAt, seen: map[*consumequeue.Queue]int64{}, lights: map[*consumequeue.Queue]lightEnd{}, keys: map[keyAt]bool{}}
	if err := e.index.Check(func(hash int32, offset int64) { c.keys[keyAt{hash, offset}] = true }); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	end, err := e.log.Scan(e.log.Min(), e.log.Done(), true, c.record)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if end != e.log.Done() {
		return fmt.Errorf("check: no sound record at %d, the log ends at %d", end, e.log.Done())
	}
	if err := c.queues(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	dirty, err := e.log.Files().Dirty(end)
	if err != nil {
		return err
	}
	if dirty > end {
		return fmt.Errorf("check: the log ends at %d and is not zero up to %d", end, dirty)
	}
	return nil
}

type checker struct {
	e    *Engine
	last int64
	seen map[*consumequeue.Queue]int64 // next queue offset expected in the log
	keys map[keyAt]bool
	// lights are the ends of the light queues: of an expired one the log has an earlier life.
	lights map[*consumequeue.Queue]lightEnd
}

type lightEnd struct{ next, physical int64 }

type keyAt struct {
	hash   int32
	offset int64
}

func (c *checker) record(_ []byte, m *message.Message) error {
	e := c.e
	if m.PhysicalOffset >= e.begun {
		if m.StoreTimestamp < c.last {
			return fmt.Errorf("record at %d was stored at %d, before the one in front of it at %d", m.PhysicalOffset, m.StoreTimestamp, c.last)
		}
		c.last = m.StoreTimestamp
	}
	if m.PhysicalOffset < e.opt.Birth(m.Topic) || m.SysFlag&message.SysInnerBatch != 0 {
		return nil
	}
	q := e.queues.Queue(m.Topic, m.QueueID)
	if q == nil {
		return nil // its topic was deleted
	}
	var n note
	e.describe(&n, m)
	p := placedOf(m)
	if n.queue != nil && n.queue == q {
		if want, ok := c.seen[q]; ok && want != m.QueueOffset {
			return fmt.Errorf("record at %d has offset %d in queue %s/%d, the next is %d", m.PhysicalOffset, m.QueueOffset, m.Topic, m.QueueID, want)
		}
		c.seen[q] = m.QueueOffset + 1
		d := n.dispatched(&p)
		entry, ok, err := q.Entry(m.QueueOffset)
		if err != nil {
			return err
		}
		if want := (consumequeue.Entry{Physical: p.PhysicalOffset, Size: p.Size, TagsCode: d.TagsCode}); !ok || entry != want {
			return fmt.Errorf("queue %s/%d has %+v (%t) at %d, the log has %+v", m.Topic, m.QueueID, entry, ok, m.QueueOffset, want)
		}
	}
	for _, l := range e.lightsOf(m) {
		if end := c.lights[l.queue]; l.at != end.next && l.at != 0 && end.next != 0 {
			return fmt.Errorf("record at %d has offset %d in light queue %s, the next is %d", m.PhysicalOffset, l.at, l.queue.Topic.Name, end.next)
		}
		c.lights[l.queue] = lightEnd{l.at + 1, m.PhysicalOffset}
	}
	if e.broken.Load() {
		return nil
	}
	for _, hash := range n.keyHashes() {
		if !c.keys[keyAt{hash, m.PhysicalOffset}] {
			return fmt.Errorf("record at %d is not in the key index under hash %d", m.PhysicalOffset, hash)
		}
	}
	return nil
}

func (c *checker) queues() (err error) {
	for q, end := range c.lights {
		if q.Max() == 0 {
			continue // it has expired
		}
		last, ok, lerr := q.Entry(q.Max() - 1)
		if lerr == nil && (q.Max() != end.next || !ok || last.Physical != end.physical) {
			lerr = fmt.Errorf("light queue %s has %d entries, the last for %d; the log says %d and %d", q.Topic.Name, q.Max(), last.Physical, end.next, end.physical)
		}
		if _, derr := q.Dirty(); lerr == nil {
			lerr = derr
		}
		err = errors.Join(err, lerr)
	}
	c.e.queues.Each(func(q *consumequeue.Queue) {
		next, ok := c.seen[q]
		if _, beside := c.lights[q]; beside {
			return
		}
		if ok && next != q.Max() {
			err = errors.Join(err, fmt.Errorf("queue %s/%d has %d entries, the log says %d", q.Topic.Name, q.ID, q.Max(), next))
		}
		if !ok && q.Min(c.e.log.Min()) != q.Max() {
			err = errors.Join(err, fmt.Errorf("queue %s/%d has entries from %d to %d and the log has no record of it", q.Topic.Name, q.ID, q.Min(c.e.log.Min()), q.Max()))
		}
		dirty, derr := q.Dirty()
		if derr != nil {
			err = errors.Join(err, derr)
		} else if dirty {
			err = errors.Join(err, fmt.Errorf("queue %s/%d is not zero behind its last entry", q.Topic.Name, q.ID))
		}
	})
	return err
}
