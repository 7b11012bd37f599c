package timer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// sweepAtOnce is how many messages are looked at between two looks at what else is to be done.
const sweepAtOnce = 4096

// hasTopic reports whether a message at a log offset still has the topic that it is for: a topic
// that was made anew since is another one.
func (w *Wheel) hasTopic(topic string, physical int64) bool {
	cfg, ok := w.o.Topic(topic)
	return ok && physical >= cfg.Birth
}

// Gone has all that waits for a deleted topic dropped, soon.
func (w *Wheel) Gone(topic string) {
	w.mu.Lock()
	waits := w.mu.counts[topic] > 0
	if waits {
		w.mu.sweeps[topic] = struct{}{}
	}
	w.mu.Unlock()
	if waits {
		w.alarm.Earlier(w.o.Clock.NowMilli())
	}
}

// sweepLeft is for what a stop or a crash has left of a sweep.
func (w *Wheel) sweepLeft() {
	for topic := range w.Counts() {
		if _, ok := w.o.Topic(topic); !ok {
			w.Gone(topic)
		}
	}
}

// sweep drops what waits for topics that are gone. What it does not come to, because of a
// crash, is dropped when it is due.
func (w *Wheel) sweep(ctx context.Context) error {
	w.mu.Lock()
	topics := w.mu.sweeps
	w.mu.sweeps = make(map[string]struct{})
	w.mu.Unlock()
	if len(topics) == 0 {
		return nil
	}
	dropped := 0
	drop := func(list []entry) {
		for i := range list {
			if w.drop(&list[i]) {
				dropped++
			}
		}
	}
	drop(w.homelessHere(topics))
	from := keyOfEntries
	for from != nil {
		if err := w.deliver(ctx); err != nil { // of the others, which need not wait for it
			return err
		}
		list, next, err := w.homelessThere(topics, from)
		if err != nil {
			return err
		}
		drop(list)
		from = next
	}
	// Soon, since only of a topic that has no successor yet it is known at a start. What can't be
	// stored now, because the disk is full, is with the next commit.
	w.Settle()
	_ = w.o.State.Commit(w.o.State.NewBatch())
	w.o.Log.Info("timers were dropped: their topics are gone", "topics", slices.Sorted(maps.Keys(topics)), "messages", dropped)
	return nil
}

// homelessHere are those that the database need not know yet.
func (w *Wheel) homelessHere(topics map[string]struct{}) (list []entry) {
	m := &w.mu
	m.Lock()
	defer m.Unlock()
	w.eachUnstoredLocked(func(e entry) {
		if _, of := topics[e.topic]; of && !w.hasTopic(e.topic, e.physical) {
			list = append(list, e)
		}
	})
	return list
}

// homelessThere are the next of those that the database knows; from where to go on, nil at
// the end.
func (w *Wheel) homelessThere(topics map[string]struct{}, from []byte) (list []entry, next []byte, err error) {
	seen := 0
	err = w.o.State.ScanFrom(state.Wheel, keyOfEntries, from, func(key, value []byte) error {
		if seen++; seen > sweepAtOnce {
			next = append([]byte(nil), key...)
			return errEnough
		}
		p, ok := placeOfKey(key)
		_, topic, whole := decodeEntry(p, value)
		if _, of := topics[string(topic)]; !ok || !whole || !of {
			return nil
		}
		w.mu.Lock()
		e, _ := w.entryLocked(p, value)
		ended := w.endedLocked(p)
		w.mu.Unlock()
		if !ended && !w.hasTopic(e.topic, e.physical) {
			list = append(list, e)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, next, err
}
