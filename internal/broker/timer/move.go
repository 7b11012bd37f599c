package timer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// movedOnceIn is how often a message may be moved. Retention by age moves one once in its
// time; when the disk is nearly full and what fills it is timers, moving them makes no room,
// and moving them again and again would be all that the server does.
const movedOnceIn = time.Hour

// Why a log file has to stay for now.
var (
	errOnTheWay = errors.New("timers in the log file are on their way out of it")
	errMoved    = errors.New("the log is full of timers, which were moved a short while ago")
)

// Move is called before the log before end is deleted: the messages there that are not due
// yet are appended once more, so that a message has its time whatever retention the log has.
// The new record names the place of the old one as its source (P6). When ctx ends, the rest
// stays for the next time.
func (w *Wheel) Move(ctx context.Context, end int64) error {
	list, err := w.before(end)
	if err != nil {
		return err
	}
	moved := 0
	for rest := list; len(rest) > 0; {
		batch := windowFrom(rest)
		rest = rest[len(batch):]
		n, err := w.moveBatch(batch)
		moved += n
		if err != nil {
			return err
		}
		breathe(ctx, len(batch))
		if ctx.Err() != nil {
			return errOnTheWay
		}
	}
	if moved > 0 {
		w.o.Log.Info("timers were moved to the log's end while the log file that they were in goes", "messages", moved)
	}
	// Whoever had a place claimed has the record in hand or has written its successor. No place
	// before end is new: what is dispatched comes behind it.
	if left := w.waiting(list); left > 0 {
		return fmt.Errorf("%w: %d", errOnTheWay, left)
	}
	return nil
}

// waiting counts those of a list that have not left their places.
func (w *Wheel) waiting(list []entry) (n int) {
	for i := range list {
		w.mu.Lock()
		if w.knownLocked(list[i].place) {
			n++
		}
		w.mu.Unlock()
	}
	return n
}

// windowFrom is the first window of a list.
func windowFrom(list []entry) []entry {
	bytes := 0
	for i := range list {
		if bytes += int(list[i].size); i == windowLeast || i > 0 && bytes > windowBytes {
			return list[:i]
		}
	}
	return list
}

// before lists the messages whose records lie before a log offset.
func (w *Wheel) before(end int64) (list []entry, err error) {
	m := &w.mu
	err = w.o.State.Scan(state.Wheel, keyOfEntries, func(key, value []byte) error {
		p, ok := placeOfKey(key)
		if !ok {
			return nil
		}
		m.Lock()
		defer m.Unlock()
		if e, ok := w.entryLocked(p, value); ok && e.physical < end && !w.endedLocked(p) {
			list = append(list, e)
		}
		return nil
	})
	m.Lock()
	defer m.Unlock()
	seen := make(map[place]struct{}, len(list))
	for _, e := range list {
		seen[e.place] = struct{}{}
	}
	w.eachUnstoredLocked(func(e entry) {
		if _, twice := seen[e.place]; !twice && e.physical < end {
			list = append(list, e)
		}
	})
	return list, err
}

// moveBatch appends messages once more and waits until they are written.
func (w *Wheel) moveBatch(list []entry) (moved int, err error) {
	claimed := list[:0:0]
	w.mu.Lock()
	for _, e := range list {
		if _, busy := w.mu.claims[e.place]; busy {
			continue
		}
		if _, known := w.findLocked(e.place); known {
			w.mu.claims[e.place] = claim{entry: e}
			claimed = append(claimed, e)
		}
	}
	w.mu.Unlock()
	records, release := w.o.Store.ReadMany(placesOf(claimed))
	defer release()
	var (
		written sync.WaitGroup
		mu      sync.Mutex
	)
	for i := range claimed {
		e := &claimed[i]
		m, why := w.again(e, records[i])
		if m == nil {
			if why == nil {
				w.drop(e)
				continue
			}
			w.release(e.place)
			mu.Lock()
			err = fmt.Errorf("move a timer: %w", why)
			mu.Unlock()
			continue
		}
		written.Add(1)
		w.o.Publish.Restore(m, false, func() { w.end(e.place) }, func(failed error) {
			mu.Lock()
			if failed != nil {
				err = fmt.Errorf("move a timer: %w", failed)
			} else {
				moved++
			}
			mu.Unlock()
			if failed != nil {
				w.release(e.place)
			}
			written.Done()
		})
	}
	written.Wait()
	w.o.Store.CatchUp()
	return moved, err
}

// again is the record of a message as it is appended once more; nil for one that is dropped,
// or, with the reason, for one that has to stay.
func (w *Wheel) again(e *entry, record storage.PlaceRead) (*message.Message, error) {
	m := new(message.Message)
	if cfg, err := w.open(m, e, record); cfg == nil {
		return nil, err
	}
	if age := w.o.Clock.NowMilli() - m.StoreTimestamp; m.Properties.Has(message.PropertyTimerRollTimes) && age < movedOnceIn.Milliseconds() {
		return nil, errMoved
	}
	times, _ := strconv.Atoi(m.Properties.Value(message.PropertyTimerRollTimes))
	m.Topic, m.QueueID = names.WheelTimer, 0
	m.Properties = m.Properties.WithAll(
		message.PropertyTimerRollTimes, strconv.Itoa(times+1),
		message.PropertySource, e.source())
	return m, nil
}
