package timer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Keep is called before the log before end is deleted: the messages there that still wait
// for their time are copied to the state database, and delivered from there. A level that
// messageDelayLevel does not have any more may leave any number of them; the room that they
// take there is less than what the log gives back.
func (t *Timer) Keep(end int64) error {
	t.mu.Lock()
	levels := len(t.mu.level)
	t.mu.Unlock()
	count := 0
	for n := range levels {
		kept, err := t.keepLevel(n, end)
		if count += kept; err != nil {
			return fmt.Errorf("keep delayed messages: %w", err)
		}
	}
	if count == 0 {
		return nil
	}
	if err := t.o.State.Sync(); err != nil {
		return fmt.Errorf("keep delayed messages: %w", err)
	}
	t.o.State.CommitSource(t)
	t.o.Log.Info("delayed messages are kept while the log file that they were in goes", "messages", count)
	return nil
}

// keepLevel keeps what waits in a level before end, a window at a time.
func (t *Timer) keepLevel(n int, end int64) (count int, err error) {
	t.mu.Lock()
	from := t.mu.level[n].done
	t.mu.Unlock()
	for {
		read := t.o.Store.Read(storage.ReadRequest{Topic: names.Schedule, QueueID: int32(n), Offset: from, MaxMessages: window, MaxBytes: windowBytes})
		next := read.Next
		if read.Status != storage.Found {
			read.Release()
			if (read.Status == storage.OffsetTooSmall || read.Status == storage.MessageWasRemoved) && next > from {
				from = next
				continue
			}
			return count, nil
		}
		kept, err := t.keepRecords(n, read.Records, end)
		last := read.Records[len(read.Records)-1].PhysicalOffset
		read.Release()
		if count += kept; err != nil || last >= end {
			return count, err
		}
		from = next
	}
}

// keepRecords copies those of a level's records that are before end and wait.
func (t *Timer) keepRecords(n int, records []storage.Record, end int64) (int, error) {
	b := t.o.State.NewBatch()
	var offsets []int64
	for i := range records {
		if rec := &records[i]; rec.PhysicalOffset < end && t.waits(n, rec.QueueOffset) {
			b.Put(state.Timers, keyOfKept(n, rec.QueueOffset), rec.Bytes)
			offsets = append(offsets, rec.QueueOffset)
		}
	}
	if len(offsets) == 0 {
		b.Discard()
		return 0, nil
	}
	if err := t.o.State.Commit(b); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.mu.level[n]
	for _, o := range offsets {
		if l.gone(o) { // meanwhile
			l.dropped = append(l.dropped, o)
			l.changed = true
			continue
		}
		l.kept[o] = struct{}{}
	}
	return len(offsets), nil
}

// waits reports whether a message has not left and is not kept already.
func (t *Timer) waits(n int, offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.mu.level[n]
	_, kept := l.kept[offset]
	return !kept && !l.gone(offset)
}

// Kept counts the messages that are kept without their log file.
func (t *Timer) Kept() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.mu.level {
		n += len(t.mu.level[i].kept)
	}
	return n
}

// gone reports whether a message has left.
func (l *level) gone(offset int64) bool {
	if offset < l.done {
		return true
	}
	_, ahead := slices.BinarySearch(l.ahead, offset)
	return ahead
}

// leaveBefore gives up what lies before offset and is not kept.
func (l *level) leaveBefore(offset int64) {
	for o := l.done; o < offset; o++ {
		if _, kept := l.kept[o]; !kept {
			l.leave(o)
		}
	}
}

// forgetBefore gives up what is kept of the time before offset.
func (l *level) forgetBefore(offset int64) (n int) {
	for o := range l.kept {
		if o < offset {
			delete(l.kept, o)
			l.dropped = append(l.dropped, o)
			n++
		}
	}
	return n
}

// keptRecords are the first kept messages of a level from an offset on: they come before
// all that are still in the log.
func (t *Timer) keptRecords(n int, from int64) (out []storage.Record, err error) {
	if t.keptOf(n) == 0 {
		return nil, nil
	}
	bytes := 0
	err = t.o.State.ScanFrom(state.Timers, keyOfKept(n, 0)[:3], keyOfKept(n, from), func(key, text []byte) error {
		_, offset, ok := keptOfKey(key)
		h, whole := message.PeekHeader(text)
		if !ok || !whole || !t.isKept(n, offset) {
			return nil // it has left since, or is flying
		}
		out = append(out, storage.Record{QueueOffset: offset, PhysicalOffset: h.PhysicalOffset, Bytes: slices.Clone(text)})
		if bytes += len(text); len(out) == window || bytes > windowBytes {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

func (t *Timer) keptOf(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.level[n].kept)
}

// isKept reports whether a message is kept and nobody delivers it already.
func (t *Timer) isKept(n int, offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.mu.level[n]
	_, kept := l.kept[offset]
	_, flying := l.flying[offset]
	return kept && !flying
}

// keyOfKept: 'b', the level's number in two bytes, the queue offset in eight; the value is
// the record as it was in the log.
func keyOfKept(n int, offset int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'b', byte((n + 1) >> 8), byte(n + 1)}, uint64(offset))
}

func keptOfKey(key []byte) (n int, offset int64, ok bool) {
	if len(key) != 11 || key[0] != 'b' {
		return 0, 0, false
	}
	n = int(key[1])<<8 | int(key[2])
	return n - 1, int64(binary.BigEndian.Uint64(key[3:])), n > 0
}
