package storage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// A record can get into further queues beside its own: Apache's multi-dispatch. Their names
// stand in one property, the offsets that it has there in another, both separated by commas.
// Only light queues are served, names that begin with %LMQ%; of any other name the offset is
// left empty, as Apache does.

// light is one of a record's further queues, and its offset there.
type light struct {
	queue *consumequeue.Queue
	at    int64
}

// maxLights is how many further queues one record may have.
const maxLights = 128

// AppendLight is Append for a message that gets into further queues; held is that of
// AppendHeld. Two messages for one light queue that come together are put in order by
// whoever sees a queue's offset first: the other one is encoded again.
func (e *Engine) AppendLight(m *message.Message, queues []string, held bool, done func(Placed, error)) {
	if err := e.appendLight(m, queues, held, done); err != nil {
		done(Placed{}, err)
	}
}

func (e *Engine) appendLight(m *message.Message, queues []string, held bool, done func(Placed, error)) error {
	if err := e.admitLights(queues); err != nil {
		return err
	}
	base := m.Properties.Without(message.PropertyInnerMultiQueueOffset)
	for {
		counters := make([]commitlog.Counter, 0, len(queues))
		for _, name := range queues {
			if names.IsLight(name) {
				counters = append(counters, commitlog.Counter{Next: &e.queues.Make(name, 0).Next})
			}
		}
		e.log.See(counters)
		var text strings.Builder
		sound, i := true, 0
		for k, name := range queues {
			if k > 0 {
				text.WriteByte(',')
			}
			if !names.IsLight(name) {
				continue
			}
			sound = sound && counters[i].Seen >= 0
			text.WriteString(strconv.FormatInt(counters[i].Seen, 10))
			i++
		}
		if !sound {
			continue // one was just deleted: it is made anew
		}
		m.Properties = base.With(message.PropertyInnerMultiQueueOffset, text.String())
		c := encoders.Get().(*encoder)
		c.put.Held, c.put.Beside = held, &counters
		err := e.append(c, m, done)
		c.release()
		if !errors.Is(err, commitlog.ErrMoved) {
			return err
		}
	}
}

// admitLights refuses names that are no queue's, and new ones where there are too many.
func (e *Engine) admitLights(queues []string) error {
	if len(queues) > maxLights {
		return fmt.Errorf("%w: a message gets into at most %d queues beside its own, not into %d", ErrTooManyLights, maxLights, len(queues))
	}
	limit := e.opt.MaxLights()
	if limit <= 0 || e.queues.Lights() < limit {
		return nil
	}
	for _, name := range queues {
		if names.IsLight(name) && e.queues.Queue(name, 0) == nil {
			return fmt.Errorf("%w: %s would be one more than maxLmqConsumeQueueNum, which is %d", ErrTooManyLights, name, limit)
		}
	}
	return nil
}

// lightsOf reads the two properties of a stored record, or of one that is being appended.
func (e *Engine) lightsOf(m *message.Message) (found []light) {
	text, ok := m.Properties.Get(message.PropertyInnerMultiQueueOffset)
	if !ok {
		return nil
	}
	offsets := strings.Split(text, ",")
	queues := strings.Split(m.Properties.Value(message.PropertyInnerMultiDispatch), ",")
	if len(offsets) != len(queues) || len(queues) > maxLights || !names.MayHaveLights(m.Topic) {
		return nil
	}
	for i, name := range queues {
		at, err := strconv.ParseInt(offsets[i], 10, 64)
		if err != nil || at < 0 || at >= maxQueueOffset || names.CheckLight(name) != nil {
			continue
		}
		found = append(found, light{e.queues.Make(name, 0), at})
	}
	return found
}

// entryOf is a record's entry in a further queue, where tags count as in its own.
func (l *light) dispatched(d Dispatched) Dispatched {
	d.Topic, d.QueueID, d.QueueOffset, d.Source, d.Light = l.queue.Topic.Name, 0, l.at, "", true
	return d
}

// enqueueLight puts one record into a further queue.
func (e *Engine) enqueueLight(l light, n *note, p *Placed) Dispatched {
	own := n.dispatched(p)
	d := l.dispatched(own)
	in := *n
	in.queue = l.queue
	at := *p
	at.QueueOffset, at.QueueID = l.at, 0
	e.enqueue(&in, &at)
	l.queue.Stored(l.at+1, p.StoreTimestamp)
	return d
}

// LightTime is when the last message of a light queue was stored, -1 when that can't be said. It
// is read once after a start, and kept from then on: of a hundred thousand that sleep it is asked
// every few minutes.
func (e *Engine) LightTime(queue string) int64 {
	q := e.queues.Queue(queue, 0)
	if q == nil {
		return -1
	}
	end, at := q.Last()
	if at == 0 {
		if at = e.storeTime(q, end-1); at > 0 {
			q.Stored(end, at)
		}
	}
	return at
}

// EachLight calls f for the queues of lite topics whose names begin with prefix, in no
// order, with their ends, until f returns false.
func (e *Engine) EachLight(prefix string, f func(queue string, end int64) bool) {
	e.queues.EachLight(prefix, func(q *consumequeue.Queue) bool { return f(q.Topic.Name, q.Max()) })
}

// Lights is the number of queues that messages get into beside their own.
func (e *Engine) Lights() int { return e.queues.Lights() }

// ExpireLight deletes a light queue if it still ends at end, and reports whether it did. A
// message that comes meanwhile keeps the queue, or begins it anew.
func (e *Engine) ExpireLight(queue string, end int64) (bool, error) {
	e.saving.Lock()
	defer e.saving.Unlock()
	q := e.queues.Queue(queue, 0)
	if q == nil {
		return false, nil
	}
	ended := false
	e.log.Guard(func() {
		if ended = q.Next == end; ended {
			q.Next = -1 // whoever has seen the offset before sees that it is gone
		}
	})
	if !ended {
		return false, nil
	}
	if err := e.queues.Delete(queue); err != nil {
		return false, fmt.Errorf("deleting light queue %s: %w", queue, err)
	}
	return true, nil
}

// replayLight is for a record that is read again.
func (r *recovery) replayLight(l light, entry consumequeue.Entry) error {
	if err := l.queue.Again(l.at, entry.Physical); err != nil {
		return err
	}
	err := l.queue.Replay(l.at, entry, !r.ours)
	var gap *consumequeue.Gap
	if errors.As(err, &gap) {
		// Of what the log has lost, it has lost the entries as well.
		l.queue.Fill(l.at)
		err = l.queue.Append(l.at, entry)
	}
	return err
}
