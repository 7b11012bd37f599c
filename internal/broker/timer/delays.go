package timer

import (
	"context"
	"errors"
	"slices"
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
		w.mu.Lock()
		w.mu.delays.idle = now <= wall
		w.mu.Unlock()
		if now <= wall {
			return nil
		}
		over, next, err := w.takeDelays(now, wall)
		if len(over) > 0 {
			w.deliverBatch(ctx, over, false)
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

// delays is how far takeDelays has come.
type delays struct {
	from place // those before it were taken, or are for take
	at   int64 // of the protocol's time: there is nothing to take before
	wall int64 // what the machine's clock showed then
	idle bool  // it showed the protocol's time when deliverDelays asked last
}

// takeDelays claims messages whose delays have ended, a window of them, and says when the next
// one may end; now when there may be more. Where it will have come is noted before it looks, so
// that what is added meanwhile can say that it is to come back.
func (w *Wheel) takeDelays(now, wall int64) (over []entry, next int64, err error) {
	m := &w.mu
	m.Lock()
	defer m.Unlock()
	if wall < m.delays.wall { // what was for take is not any more
		m.delays.from, m.delays.at = least(m.delays.from, place{wall + 1, 0}), 0
	}
	m.delays.wall = wall
	if at := max(m.retryAt, m.delays.at); at > now { // what has failed is among them
		return nil, at, nil
	}
	from := m.delays.from
	if from.due <= wall {
		from = place{wall + 1, 0}
	}
	m.delays.from, m.delays.at = place{now + 1, 0}, now+outlook
	found, end, next, err := w.endedDelaysLocked(from, now)
	if err != nil {
		end = from
	}
	over, left := w.pickDelaysLocked(found)
	m.delays.from = least(m.delays.from, least(end, left))
	if m.delays.from.due <= now {
		next = now
	}
	m.delays.at = min(m.delays.at, next)
	return over, next, err
}

// endedDelaysLocked finds the delays from a place on that have ended, in their order: all that the
// database does not know, and of the others as many as are taken at once, which go up to end.
// Next is when one ends that has not. Those that are not stored are looked at first: what the
// database is told while it is asked, without the lock, is then seen in one of the two places.
func (w *Wheel) endedDelaysLocked(from place, now int64) (found []place, end place, next int64, err error) {
	end, next = place{now + 1, 0}, now+outlook
	look := func(p place) (ended bool) {
		if ended = p.due <= now; ended {
			found = append(found, p)
		} else {
			next = min(next, p.due)
		}
		return ended
	}
	w.eachUnstoredLocked(func(e entry) {
		if e.relative && e.compare(from) >= 0 {
			look(e.place)
		}
	})
	w.mu.Unlock()
	defer w.mu.Lock()
	n := 0
	err = w.o.State.ScanFrom(state.Wheel, keyOfEntries, keyOfEntry(from), func(key, value []byte) error {
		p, ok := placeOfKey(key)
		switch e, _, whole := decodeEntry(p, value); {
		case ok && p.due >= next:
			return errEnough
		case !ok || !whole || !e.relative:
			return nil
		case n > windowLeast:
			end = p
			return errEnough
		}
		n++
		if !look(p) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	slices.SortFunc(found, place.compare)
	return slices.Compact(found), end, next, err
}

// pickDelaysLocked claims the first of those that still wait, a window of them, and says where the
// rest begins. Where somebody else has a claim, lookAgainLocked is for when that comes to nothing.
func (w *Wheel) pickDelaysLocked(found []place) (over []entry, rest place) {
	m := &w.mu
	bytes := 0
	for _, p := range found {
		if len(over) == windowLeast || bytes > windowBytes {
			return over, p
		}
		if _, claimed := m.claims[p]; claimed {
			continue
		}
		if e, ok := w.findLocked(p); ok {
			m.claims[p] = claim{entry: e, delivery: true} // not popped: it stays in near
			over = append(over, e)
			bytes += int(e.size)
		}
	}
	return over, noEdge
}

func least(a, b place) place {
	if b.compare(a) < 0 {
		return b
	}
	return a
}

// lookAgainLocked has takeDelays come back to a message that it may have passed.
func (w *Wheel) lookAgainLocked(e *entry) {
	if e.relative {
		d := &w.mu.delays
		d.from, d.at = least(d.from, e.place), min(d.at, e.due)
	}
}
