// Package timer delivers messages with a delay level: each level is a queue of the
// schedule topic, in which everything falls due in the order of its offsets.
//
// Invariants: never early; a message leaves its level when its copy has been dispatched
// and not before (P6: the copy names the place it comes from, and dispatch is replayed
// in recovery), so a crash neither loses nor repeats one; only what failed is tried
// again; the loop sleeps until the first due time of all levels.
//
// Neighbours: publish diverts messages here and takes the copies; storage reads; state
// keeps how far each level is; broker reports what was dispatched.
package timer

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Store is what a timer asks of the storage engine.
type Store interface {
	Read(r storage.ReadRequest) storage.ReadResult
	MinOffset(topic string, queueID int32) int64
	MaxOffset(topic string, queueID int32) int64
}

// Options is what a Timer needs.
type Options struct {
	Store   Store
	State   *state.DB
	Publish *publish.Publisher
	// Topic finds the topic that a delayed message goes to.
	Topic  func(name string) (*topic.Config, bool)
	Clock  *clock.Clock
	Events Events
	Log    *slog.Logger
}

// Events tell what happened; each may be nil.
type Events struct {
	Delivered func(level int32, late time.Duration)
	Dropped   func(level int32, topic string) // its topic is gone
}

// Timer is the delay levels. mu guards what is in flight and is held across neither a
// read nor an append.
type Timer struct {
	o      Options
	levels publish.Levels // those of mu that are delivered
	alarm  *clock.Alarm
	moved  chan struct{} // a copy was dispatched
	began  int64         // when recovery was over
	tally  tally
	mu     struct {
		sync.Mutex
		level []level
	}
}

// level is one queue of the schedule topic.
type level struct {
	next    int64              // the next message to look at
	retryAt int64              // by the protocol's time: not before, as the log took nothing
	done    int64              // everything before it has left
	ahead   []int64            // left already although an earlier one has not, sorted
	flying  map[int64]string   // copies that are appended and not dispatched, with their topic
	kept    map[int64]struct{} // not in the log any more but in the database
	dropped []int64            // to be removed there with the next commit
	changed bool               // since the last commit
}

// Open returns the timer with what was stored of it. It is opened before the store, and
// looks at the store first when it runs.
func Open(o Options) (*Timer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Timer{o: o, levels: o.Publish.Levels(), moved: make(chan struct{}, 1)}
	t.have(len(t.levels))
	err := o.State.Scan(state.Timers, nil, func(key, value []byte) error {
		if n, offset, ok := keptOfKey(key); ok {
			t.have(n + 1)
			t.mu.level[n].kept[offset] = struct{}{}
			return nil
		}
		n, ok := levelOfKey(key)
		if !ok || len(value) < 8 || len(value)%8 != 0 {
			return fmt.Errorf("delay level progress %x = %x is not readable", key, value)
		}
		t.have(n + 1)
		l := &t.mu.level[n]
		l.done = int64(binary.BigEndian.Uint64(value))
		for rest := value[8:]; len(rest) > 0; rest = rest[8:] {
			l.ahead = append(l.ahead, int64(binary.BigEndian.Uint64(rest)))
		}
		l.next = l.done
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.alarm = o.Clock.NewAlarm()
	t.alarm.Earlier(o.Clock.NowMilli()) // so that nobody moves the clock past the first look
	return t, nil
}

// have makes the levels up to n known. Who comes after recovery finds all.
func (t *Timer) have(n int) {
	for len(t.mu.level) < n {
		t.mu.level = append(t.mu.level, level{flying: make(map[int64]string), kept: make(map[int64]struct{})})
	}
}

// Offsets returns how far each level is, by level, for the export in Apache's form.
func (t *Timer) Offsets() map[int32]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[int32]int64)
	for i := range t.mu.level {
		if done := t.mu.level[i].done; done > 0 {
			out[int32(i+1)] = done
		}
	}
	return out
}

// Clamp brings progress back into what recovery has found of each queue (P4). What lies
// before a queue's beginning is gone; what would lie beyond its end was never stored. It
// returns how many levels it moved.
//
// A level that messageDelayLevel does not have any more keeps what waits in it, until it has.
func (t *Timer) Clamp() (moved int) {
	t.began = t.o.Clock.NowMilli()
	for i := len(t.mu.level); i < config.MostDelays; i++ {
		if t.o.Store.MaxOffset(names.Schedule, int32(i)) > 0 {
			t.have(i + 1)
		}
	}
	for i := range t.mu.level {
		low, high := t.o.Store.MinOffset(names.Schedule, int32(i)), t.o.Store.MaxOffset(names.Schedule, int32(i))
		t.mu.Lock()
		l := &t.mu.level[i]
		was := l.done
		if l.done > high {
			l.done, l.changed = high, true
		}
		l.forgetBefore(l.done)
		if len(l.kept) > 0 {
			l.leaveBefore(low)
		} else if l.done < low {
			l.done, l.changed = low, true
		}
		if l.done != was {
			moved++
			t.o.Log.Warn("progress of a delay level was outside its queue", "level", i+1, "was", was, "is", l.done)
		}
		l.ahead = slices.DeleteFunc(l.ahead, func(o int64) bool { return o < l.done || o >= high })
		l.next = l.done
		waits := high - max(l.done, low) - int64(len(l.ahead)) + int64(len(l.kept))
		t.mu.Unlock()
		if i >= len(t.levels) && waits > 0 {
			t.o.Log.Warn("messages wait in a delay level that messageDelayLevel does not have any more; they do until it has", "level", i+1, "messages", waits)
		}
	}
	t.o.State.CommitSource(t)
	return moved
}

// Arrived notes a message that was dispatched into the schedule topic.
func (t *Timer) Arrived(queueID int32, storeTimestamp int64) {
	if queueID >= 0 && int(queueID) < len(t.levels) {
		t.alarm.Earlier(storeTimestamp + t.levels[queueID].Milliseconds())
	}
}

const sourcePrefix = "level/"

func sourceOf(level int, offset int64) string {
	return sourcePrefix + strconv.Itoa(level+1) + "/" + strconv.FormatInt(offset, 10)
}

func parseSource(s string) (level int, offset int64, ok bool) {
	s, ok = strings.CutPrefix(s, sourcePrefix)
	if !ok {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(s, "/")
	n, err1 := strconv.Atoi(a)
	offset, err2 := strconv.ParseInt(b, 10, 64)
	return n - 1, offset, err1 == nil && err2 == nil && n > 0
}

// Dispatched notes that the copy of a delayed message is in its topic's queue, which ends
// the delayed one. It reports whether source is a timer's.
func (t *Timer) Dispatched(source string) bool {
	n, offset, ok := parseSource(source)
	if !ok {
		return false
	}
	if n < config.MostDelays {
		t.left(n, offset)
	}
	return true
}

// left notes that a message is no longer the timer's.
func (t *Timer) left(n int, offset int64) {
	t.mu.Lock()
	t.have(n + 1)
	l := &t.mu.level[n]
	delete(l.flying, offset)
	l.leave(offset)
	t.mu.Unlock()
	t.o.State.CommitSource(t)
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

func (l *level) leave(offset int64) {
	if _, kept := l.kept[offset]; kept {
		delete(l.kept, offset)
		l.dropped = append(l.dropped, offset)
		l.changed = true
	}
	if offset < l.done {
		return
	}
	l.changed = true
	if offset > l.done {
		if at, found := slices.BinarySearch(l.ahead, offset); !found {
			l.ahead = slices.Insert(l.ahead, at, offset)
		}
		return
	}
	l.done++
	for len(l.ahead) > 0 && l.ahead[0] == l.done {
		l.ahead = l.ahead[1:]
		l.done++
	}
	l.next = max(l.next, l.done)
}

// Collect writes the progress of the levels that have moved since the last commit.
func (t *Timer) Collect(b *state.Batch) func(error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.mu.level {
		l := &t.mu.level[i]
		if !l.changed {
			continue
		}
		l.changed = false
		b.AfterLog() // what has left is in the log
		value := binary.BigEndian.AppendUint64(nil, uint64(l.done))
		for _, o := range l.ahead {
			value = binary.BigEndian.AppendUint64(value, uint64(o))
		}
		b.Put(state.Timers, keyOfLevel(i), value)
		for _, o := range l.dropped {
			b.Delete(state.Timers, keyOfKept(i, o))
		}
		l.dropped = l.dropped[:0]
	}
	return nil
}

// keyOfLevel: 'l' and the level's number in two bytes, so that other timers can use the
// same keyspace.
func keyOfLevel(i int) []byte { return []byte{'l', byte((i + 1) >> 8), byte(i + 1)} }

func levelOfKey(key []byte) (int, bool) {
	if len(key) != 3 || key[0] != 'l' {
		return 0, false
	}
	n := int(key[1])<<8 | int(key[2])
	return n - 1, n > 0
}

// Run delivers what falls due until ctx ends.
func (t *Timer) Run(ctx context.Context) error {
	defer t.alarm.Stop()
	for {
		if err := t.alarm.Wait(ctx); err != nil {
			return err
		}
		for n := range t.levels {
			if err := t.deliver(ctx, n); err != nil {
				return err
			}
		}
		if err := t.settle(ctx); err != nil {
			return err
		}
	}
}
