package timer

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// window is how many messages of a level are read at once.
const window = 256

// pause before a failed append is tried again, in milliseconds of the protocol's time.
const pause = 1000

// deliver appends the copies of all messages of a level that are due, and sets the alarm
// for the first that is not.
func (t *Timer) deliver(ctx context.Context, n int) error {
	late := int64(0)
	for ctx.Err() == nil {
		t.mu.Lock()
		from, at := t.mu.level[n].next, t.mu.level[n].retryAt
		t.mu.Unlock()
		if at > t.o.Clock.NowMilli() {
			t.alarm.Earlier(at)
			return nil
		}
		kept, err := t.keptRecords(n, from)
		if err != nil {
			return err
		}
		if len(kept) > 0 {
			if !t.deliverRecords(n, kept) {
				return nil
			}
			continue
		}
		messages, bytes := windowOf(late)
		read := t.o.Store.Read(storage.ReadRequest{Topic: names.Schedule, QueueID: int32(n), Offset: from, MaxMessages: messages, MaxBytes: bytes})
		if read.Status != storage.Found {
			next, again := read.Next, read.Status == storage.OffsetTooSmall || read.Status == storage.MessageWasRemoved
			read.Release()
			if again && next > from { // retention has removed what was there
				t.skipTo(n, next)
				continue
			}
			return nil
		}
		more := t.deliverRecords(n, read.Records)
		late = t.o.Clock.NowMilli() - t.due(n, &read.Records[0])
		rest, n := read.Next < read.Max, len(read.Records)
		read.Release()
		if !more {
			return nil
		}
		if rest {
			breathe(ctx, n)
		}
	}
	return ctx.Err()
}

// deliverRecords appends the copies of due records and waits until they are written. It
// reports whether the level may have more that is due.
func (t *Timer) deliverRecords(n int, records []storage.Record) bool {
	var (
		written sync.WaitGroup
		mu      sync.Mutex
		failed  int64 = -1 // the first that was not written
		why     error
	)
	next, more, retryAt := records[0].QueueOffset, true, int64(0)
	for i := range records {
		rec := &records[i]
		if due := t.due(n, rec); due > t.o.Clock.NowMilli() {
			t.alarm.Earlier(due)
			more = false
			break
		}
		next = rec.QueueOffset + 1
		m := t.take(n, rec)
		if m == nil {
			continue
		}
		offset := rec.QueueOffset
		written.Add(1)
		t.o.Publish.Restore(m, false, func() { t.left(n, offset) }, func(err error) {
			if err != nil {
				mu.Lock()
				if failed < 0 || offset < failed {
					failed, why = offset, err
				}
				mu.Unlock()
				t.land(n, offset)
			}
			written.Done()
		})
	}
	written.Wait()
	if failed >= 0 {
		// What was written behind it is flying or has left, so only the failed ones are
		// appended again.
		next, more = failed, false
		t.o.Log.Warn("delayed messages can't be delivered now and will be tried again", "level", n+1, "offset", failed, "err", why)
		retryAt = t.o.Clock.NowMilli() + pause
		t.alarm.Earlier(retryAt)
	}
	t.mu.Lock()
	t.mu.level[n].next, t.mu.level[n].retryAt = max(next, t.mu.level[n].done), retryAt
	t.mu.Unlock()
	return more
}

// due is when a record of a level is to be delivered. This server's stamps are never ahead of
// its clock. One that is comes from another server, or from before the start, and a clock that
// was wrong: nobody knows when that was, but it was before the start.
func (t *Timer) due(n int, rec *storage.Record) int64 {
	h, ok := message.PeekHeader(rec.Bytes)
	if !ok {
		return 0
	}
	stored := h.StoreTimestamp
	if stored > t.o.Clock.NowMilli() {
		stored = t.began
	}
	return stored + t.levels[n].Milliseconds()
}

// take makes the copy of a record as its real topic gets it, and notes it as flying. It
// is nil for one that has left already or has nowhere to go.
func (t *Timer) take(n int, rec *storage.Record) *message.Message {
	t.mu.Lock()
	gone := t.mu.level[n].has(rec.QueueOffset)
	t.mu.Unlock()
	if gone {
		return nil
	}
	m := new(message.Message)
	_, err := message.DecodeStored(rec.Bytes, m)
	name := m.Properties.Value(message.PropertyRealTopic)
	cfg, exists := t.o.Topic(name)
	if err != nil || !exists || rec.PhysicalOffset < cfg.Birth {
		t.o.Log.Info("a delayed message was dropped: its topic is gone", "level", n+1, "offset", rec.QueueOffset, "topic", name, "err", err)
		if t.o.Events.Dropped != nil {
			t.o.Events.Dropped(int32(n+1), name)
		}
		t.left(n, rec.QueueOffset)
		return nil
	}
	queue, _ := strconv.ParseInt(m.Properties.Value(message.PropertyRealQueue), 10, 32)
	late := t.o.Clock.NowMilli() - m.StoreTimestamp - t.levels[n].Milliseconds()
	m.Topic, m.QueueID = cfg.Name, int32(queue)
	m.Properties = message.PropertiesIn(m.Properties.AppendEdited(nil,
		[]string{message.PropertyDelay, message.PropertyTimerDeliverMs, message.PropertyTimerDelaySec, message.PropertyTimerDelayMs},
		message.PropertySource, sourceOf(n, rec.QueueOffset)))
	t.mu.Lock()
	t.mu.level[n].flying[rec.QueueOffset] = cfg.Name
	t.mu.Unlock()
	if t.o.Events.Delivered != nil {
		t.o.Events.Delivered(int32(n+1), time.Duration(late)*time.Millisecond)
	}
	return m
}

// has reports whether a message has left or is about to.
func (l *level) has(offset int64) bool {
	if offset < l.done {
		return true
	}
	if _, flying := l.flying[offset]; flying {
		return true
	}
	for _, o := range l.ahead {
		if o == offset {
			return true
		}
	}
	return false
}

// land takes back a copy that was not written.
func (t *Timer) land(n int, offset int64) {
	t.mu.Lock()
	delete(t.mu.level[n].flying, offset)
	t.mu.Unlock()
}

// skipTo gives up what retention has removed.
func (t *Timer) skipTo(n int, offset int64) {
	t.mu.Lock()
	l := &t.mu.level[n]
	l.leaveBefore(offset)
	l.next = max(l.next, offset)
	t.mu.Unlock()
	t.o.State.CommitSource(t)
}

// settle waits until everything that was appended has been dispatched, so that who moves
// the clock finds it delivered. A topic that is deleted in between has no dispatch.
func (t *Timer) settle(ctx context.Context) error {
	look := time.NewTimer(time.Second)
	defer look.Stop()
	for {
		if t.flying() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.moved:
		case <-look.C:
			t.dropHomeless()
			look.Reset(time.Second)
		}
	}
}

func (t *Timer) flying() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.mu.level {
		n += len(t.mu.level[i].flying)
	}
	return n
}

// dropHomeless ends copies whose topic was deleted before they were dispatched.
func (t *Timer) dropHomeless() {
	type place struct {
		level  int
		offset int64
	}
	var gone []place
	t.mu.Lock()
	for i := range t.mu.level {
		for offset, name := range t.mu.level[i].flying {
			if _, ok := t.o.Topic(name); !ok {
				gone = append(gone, place{i, offset})
			}
		}
	}
	t.mu.Unlock()
	for _, p := range gone {
		t.left(p.level, p.offset)
	}
}
