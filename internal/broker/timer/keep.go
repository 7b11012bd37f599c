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

// keepMost is how many bytes of delayed messages are kept outside the log at a time. With
// more of them the log's file stays, and with it the room that it takes: nothing that waits
// is lost for it.
const keepMost = 64 << 20

// ErrTooMuch says that a log file holds more delayed messages than can be kept without it.
var ErrTooMuch = errors.New("too many delayed messages that are not due yet")

// Keep is called before the log before end is deleted: the messages there that still wait
// for their time are copied to the state database, and delivered from there.
func (t *Timer) Keep(end int64) error {
	b := t.o.State.NewBatch()
	saved := make([]map[int64]int, len(t.mu.level))
	room := keepMost - t.keptBytes()
	for n := range saved {
		saved[n] = make(map[int64]int)
		if err := t.keepLevel(n, end, b, saved[n], &room); err != nil {
			b.Discard()
			return err
		}
	}
	if b.Empty() {
		b.Discard()
		return nil
	}
	err := t.o.State.Commit(b)
	if err == nil {
		err = t.o.State.Sync()
	}
	if err != nil {
		return fmt.Errorf("keep delayed messages: %w", err)
	}
	count := 0
	t.mu.Lock()
	for n, of := range saved {
		l := &t.mu.level[n]
		for offset, size := range of {
			count++
			if l.gone(offset) { // meanwhile
				l.dropped = append(l.dropped, offset)
				l.changed = true
				continue
			}
			l.kept[offset] = size
		}
	}
	t.mu.Unlock()
	t.o.State.CommitSource(t)
	t.o.Log.Info("delayed messages are kept while the log file that they were in goes", "messages", count)
	return nil
}

func (t *Timer) keepLevel(n int, end int64, b *state.Batch, saved map[int64]int, room *int) error {
	t.mu.Lock()
	from := t.mu.level[n].done
	t.mu.Unlock()
	for {
		read := t.o.Store.Read(storage.ReadRequest{Topic: names.Schedule, QueueID: int32(n), Offset: from, MaxMessages: window, MaxBytes: 4 << 20})
		next := read.Next
		if read.Status != storage.Found {
			read.Release()
			if (read.Status == storage.OffsetTooSmall || read.Status == storage.MessageWasRemoved) && next > from {
				from = next
				continue
			}
			return nil
		}
		for i := range read.Records {
			rec := &read.Records[i]
			if rec.PhysicalOffset >= end {
				read.Release()
				return nil
			}
			next = rec.QueueOffset + 1
			if !t.waits(n, rec.QueueOffset) {
				continue
			}
			if *room -= len(rec.Bytes); *room < 0 {
				read.Release()
				return fmt.Errorf("%w: more than %d bytes", ErrTooMuch, keepMost)
			}
			b.Put(state.Timers, keyOfKept(n, rec.QueueOffset), rec.Bytes)
			saved[rec.QueueOffset] = len(rec.Bytes)
		}
		read.Release()
		from = next
	}
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

func (t *Timer) keptBytes() (sum int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.mu.level {
		for _, size := range t.mu.level[i].kept {
			sum += size
		}
	}
	return sum
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
func (t *Timer) keptRecords(n int, from int64) ([]storage.Record, error) {
	var offsets []int64
	t.mu.Lock()
	l := &t.mu.level[n]
	for o := range l.kept {
		if _, flying := l.flying[o]; o >= from && !flying {
			offsets = append(offsets, o)
		}
	}
	t.mu.Unlock()
	slices.Sort(offsets)
	var out []storage.Record
	for _, o := range offsets[:min(len(offsets), window)] {
		text, ok, err := t.o.State.Get(state.Timers, keyOfKept(n, o))
		if err != nil {
			return nil, err
		}
		h, whole := message.PeekHeader(text)
		if !ok || !whole {
			continue // has left since
		}
		out = append(out, storage.Record{QueueOffset: o, PhysicalOffset: h.PhysicalOffset, Bytes: text})
	}
	return out, nil
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
