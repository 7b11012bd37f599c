package timer

import (
	"context"
	"errors"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// Who asks for a time means what clocks show, and who asks for a delay means how long it takes.
// While the machine's clock shows what the protocol's does, that is the same, and all wait in one
// order. When the machine's clock has been set back, what it shows comes later than the end of a
// delay; the delays that end until then are looked for among all that the order has there.

// outlook is how far ahead, in milliseconds, the next delay is looked for.
const outlook = int64(time.Minute / time.Millisecond)

// deliverDelays appends the copies of the messages whose delays are over although the
// machine's clock does not show it yet.
func (w *Wheel) deliverDelays(ctx context.Context) error {
	for ctx.Err() == nil {
		now, wall := w.o.Clock.Read()
		if now <= wall {
			return nil
		}
		over, next, err := w.takeDelays(now, wall)
		if len(over) > 0 {
			w.deliverBatch(over)
		}
		if err != nil {
			return err
		}
		if next > now {
			w.alarm.Earlier(next)
			return nil
		}
		breathe(ctx, len(over))
	}
	return ctx.Err()
}

// takeDelays claims messages whose delays have ended, a window of them, and says when the next
// one may end; now when there may be more. Those that are not stored are looked at first: what
// the database is told meanwhile is then seen in one of the two places.
func (w *Wheel) takeDelays(now, wall int64) (over []entry, next int64, err error) {
	m := &w.mu
	next = now + outlook
	bytes := 0
	look := func(p place) (enough bool) {
		switch {
		case m.claims[p] != nil: // lookAgainLocked, when that comes to nothing
		case p.due > now:
			next = min(next, p.due)
		case len(over) == windowLeast || bytes > windowBytes:
			next, m.delaysTo = now, min(m.delaysTo, p.due-1)
		default:
			if e, ok := w.findLocked(p); ok {
				m.claims[p] = &claim{entry: e, delivery: true} // not popped: it stays in near
				over = append(over, e)
				bytes += int(e.size)
			}
		}
		return p.due >= next || next == now
	}
	m.Lock()
	if m.retryAt > now {
		defer m.Unlock()
		return nil, m.retryAt, nil // what has failed is among them
	}
	from := place{max(wall, m.delaysTo) + 1, 0}
	m.delaysTo = max(m.delaysTo, now)
	w.eachUnstoredLocked(func(e entry) {
		if e.relative {
			look(e.place)
		}
	})
	m.Unlock()
	err = w.o.State.ScanFrom(state.Wheel, keyOfEntries, keyOfEntry(from), func(key, value []byte) error {
		p, ok := placeOfKey(key)
		if ok && p.due >= next {
			return errEnough
		}
		e, _, whole := decodeEntry(p, value)
		if !ok || !whole || !e.relative {
			return nil
		}
		m.Lock()
		defer m.Unlock()
		if look(p) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return over, next, err
}

// lookAgainLocked has takeDelays come back to a message that it may have passed.
func (w *Wheel) lookAgainLocked(e *entry) {
	if e.relative {
		w.mu.delaysTo = min(w.mu.delaysTo, e.due-1)
	}
}
