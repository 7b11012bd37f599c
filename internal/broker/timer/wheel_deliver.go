package timer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// deliver appends the copies of all messages that are due.
func (w *Wheel) deliver(ctx context.Context) error {
	began, n := time.Now(), 0
	defer func() { w.flow.add(n, began) }()
	for ctx.Err() == nil {
		due, full, err := w.take(w.o.Clock.Read())
		if len(due) > 0 {
			n += len(due)
			w.deliverBatch(ctx, due, full)
		}
		if err != nil || len(due) == 0 {
			return err
		}
	}
	return ctx.Err()
}

// work is the memory that the loop works with, kept for the next batch.
type work struct {
	due      []entry           // taken
	found    []entry           // loaded
	messages []message.Message // the copies
	copies   []waking
	text     []byte // of their properties
}

// textKept is the most text that is kept.
const textKept = 1 << 20

// letGo ends a batch: what its copies were made of may be collected.
func (k *work) letGo() {
	clear(k.messages)
	clear(k.copies)
	if k.text = k.text[:0]; cap(k.text) > textKept {
		k.text = nil
	}
}

// deliverBatch appends the copies of messages, a window at a time, and waits until they are
// written. more says that it is not the last batch.
func (w *Wheel) deliverBatch(ctx context.Context, due []entry, more bool) {
	records, release := w.o.Store.ReadMany(placesOf(due))
	defer release()
	defer w.work.letGo()
	copies, failed, why := w.copiesOf(due, records)
	for len(copies) > 0 {
		n := w.nextWindow(copies)
		for some := range slices.Chunk(copies[:n], appendPiece) {
			giveWay()
			left, err := w.append(some)
			failed, why = append(failed, left...), cmp.Or(why, err)
		}
		if copies = copies[n:]; more || len(copies) > 0 {
			breathe(ctx, n)
		}
	}
	if w.retry(failed) {
		first := &failed[0]
		w.o.Log.Warn("timers can't be delivered now and will be tried again", "topic", first.topic, "due", first.due, "at", first.physical, "err", why)
	}
}

// waking is the copy of a message that is due, as its topic gets it.
type waking struct {
	*entry
	m *message.Message
}

// copiesOf makes the copies of messages, those for one queue side by side, so that of very many
// that are due together a window is for few waiting consumers and each answer holds many. It
// returns too what can't be read now, and why the first can't.
func (w *Wheel) copiesOf(due []entry, records []storage.PlaceRead) (copies []waking, failed []entry, why error) {
	k := &w.work
	k.messages = slices.Grow(k.messages[:0], len(due))[:len(due)]
	copies = k.copies[:0]
	defer func() { k.copies = copies }()
	for i := range due {
		if i%copyPiece == copyPiece-1 {
			giveWay()
		}
		e, m := &due[i], &k.messages[i]
		made, err := w.copyOf(m, e, records[i])
		switch {
		case err != nil:
			failed, why = append(failed, *e), cmp.Or(why, err)
		case !made:
			w.drop(e)
		default:
			copies = append(copies, waking{e, m})
		}
	}
	slices.SortStableFunc(copies, func(a, b waking) int {
		return cmp.Or(cmp.Compare(a.m.Topic, b.m.Topic), cmp.Compare(a.m.QueueID, b.m.QueueID))
	})
	return copies, failed, why
}

// nextWindow is how many of the copies are appended without a breath.
func (w *Wheel) nextWindow(copies []waking) (n int) {
	n, most := windowOf(w.o.Clock.WallMilli() - copies[0].due)
	n = min(n, len(copies))
	bytes := 0
	for i := range copies[:n] {
		if bytes += int(copies[i].size); i > 0 && bytes > most {
			return i
		}
	}
	return n
}

// append appends copies, waits until they are written and returns those that could not be, and
// why the first could not.
func (w *Wheel) append(copies []waking) (failed []entry, why error) {
	var (
		written sync.WaitGroup
		mu      sync.Mutex
	)
	w.o.Round(func() {
		for _, c := range copies {
			written.Add(1)
			w.o.Publish.Restore(c.m, true, func() { w.end(c.place) }, func(err error) {
				if err != nil {
					mu.Lock()
					failed, why = append(failed, *c.entry), cmp.Or(why, err)
					mu.Unlock()
				}
				written.Done()
			})
		}
	})
	written.Wait()
	return failed, why
}

func placesOf(list []entry) []storage.RecordPlace {
	places := make([]storage.RecordPlace, len(list))
	for i := range list {
		places[i] = storage.RecordPlace{Physical: list[i].physical, Size: list[i].size}
	}
	return places
}

// retry has only what was not written tried again. It reports whether there is some, and nothing
// else waited to be: on a full disk very many do, and one says it for all.
func (w *Wheel) retry(failed []entry) (first bool) {
	if len(failed) == 0 {
		return false
	}
	m := &w.mu
	m.Lock()
	defer m.Unlock()
	for _, e := range failed {
		if c, claimed := m.claims[e.place]; claimed && !c.popped {
			w.lookAgainLocked(&e) // it is in the window still
		} else {
			m.later = append(m.later, e)
		}
		delete(m.claims, e.place)
	}
	first = m.retryAt == 0
	if first {
		m.retryAt = w.o.Clock.NowMilli() + pause
	}
	return first
}

// open reads a message that is to go on into m, and returns the topic that it goes to: none for
// one that has nowhere to go or is not there any more, and, with the reason, for one that can't be
// read now.
func (w *Wheel) open(m *message.Message, e *entry, record storage.PlaceRead) (*topic.Config, error) {
	if cfg, exists := w.o.Topic(e.topic); exists && e.physical >= cfg.Birth {
		err := w.read(m, e, record)
		if err == nil {
			return cfg, nil
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		w.o.Log.Error("a timer was dropped: its record is not there", "topic", e.topic, "due", e.due, "offset", e.offset, "at", e.physical, "err", err)
	}
	return nil, nil
}

// copyOf makes the copy m of a message as its topic gets it, unless the message is to be dropped.
func (w *Wheel) copyOf(m *message.Message, e *entry, record storage.PlaceRead) (made bool, err error) {
	cfg, err := w.open(m, e, record)
	if cfg == nil {
		return false, err
	}
	now := w.nowFor(e)
	queue, _ := strconv.ParseInt(m.Properties.Value(message.PropertyRealQueue), 10, 32)
	m.Topic, m.QueueID = cfg.Name, int32(queue)
	var enqueued, dequeued, source [48]byte // two numbers of 20 digits at most
	text, start := w.work.text, len(w.work.text)
	text = m.Properties.AppendEdited(text, ofTheWheel,
		message.PropertyTimerEnqueueMs, string(strconv.AppendInt(enqueued[:0], m.StoreTimestamp, 10)),
		message.PropertyTimerDequeueMs, string(strconv.AppendInt(dequeued[:0], now, 10)),
		message.PropertySource, string(e.appendSource(source[:0])))
	m.Properties, w.work.text = message.PropertiesIn(text[start:]), text
	if w.o.Events.Delivered != nil {
		w.o.Events.Delivered(cfg.Name, time.Duration(now-e.due)*time.Millisecond)
	}
	return true, nil
}

// ofTheWheel are the properties that a message has only while it waits.
var ofTheWheel = []string{message.PropertyRealTopic, message.PropertyRealQueue}

// nowFor is the time that a message's due time is compared with.
func (w *Wheel) nowFor(e *entry) int64 {
	now, wall := w.o.Clock.Read()
	if e.relative {
		return now
	}
	return wall
}

// settle waits until everything that was appended has been dispatched, so that who moves the
// clock finds it delivered. A topic that is deleted in between has no dispatch.
func (w *Wheel) settle(ctx context.Context) error {
	look := time.NewTimer(time.Second)
	defer look.Stop()
	for w.delivering() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.moved:
		case <-look.C:
			w.endHomeless()
			look.Reset(time.Second)
		}
	}
	return nil
}

func (w *Wheel) delivering() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.mu.claims {
		if c.delivery {
			return true
		}
	}
	return false
}

// endHomeless ends copies whose topic was deleted before they were dispatched.
func (w *Wheel) endHomeless() {
	var list []place
	w.mu.Lock()
	for p, c := range w.mu.claims {
		if _, ok := w.o.Topic(c.topic); !ok && c.delivery {
			list = append(list, p)
		}
	}
	w.mu.Unlock()
	for _, p := range list {
		w.end(p)
	}
}

// read decodes the record of a message into m and holds that it is the one: if not, it is not found.
func (w *Wheel) read(m *message.Message, e *entry, record storage.PlaceRead) error {
	if record.Err != nil {
		return record.Err
	}
	if _, err := message.DecodeStored(record.Bytes, m); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrNotFound, err)
	}
	due, _ := message.TimerDue(m.Properties)
	if m.Topic != names.WheelTimer || m.QueueOffset != e.offset || due != e.due {
		return storage.ErrNotFound
	}
	return nil
}

// eachQueued calls each for the messages of the timers' queue from one offset to before
// another, those that take others back among them.
func (w *Wheel) eachQueued(from, to int64, each func(*entry, *message.Message)) error {
	for from < to {
		read := w.o.Store.Read(storage.ReadRequest{Topic: names.WheelTimer, Offset: from, MaxMessages: int(min(to-from, wheelWindow)), MaxBytes: 4 << 20})
		next := max(read.Next, from)
		if read.Status != storage.Found {
			read.Release()
			if (read.Status == storage.OffsetTooSmall || read.Status == storage.MessageWasRemoved || read.Status == storage.OffsetFoundNull) && next > from {
				from = next
				continue
			}
			if read.Status == storage.OffsetFoundNull {
				return fmt.Errorf("the timers' queue can't be read at offset %d", from)
			}
			return nil
		}
		for i := range read.Records {
			rec := &read.Records[i]
			next = rec.QueueOffset + 1
			if e, m := decodeQueued(rec.Bytes, rec.PhysicalOffset); m != nil {
				e.offset = rec.QueueOffset
				each(e, m)
			}
		}
		read.Release()
		from = next
	}
	return nil
}
