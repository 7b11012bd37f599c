package timer

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// tally is where the delayed messages go, as far as somebody has asked. Each record is
// read once for it. mu is held across reads: only those who ask wait for it.
type tally struct {
	mu    sync.Mutex
	level []counted
	names map[string]string // one copy of each topic's name
	stale atomic.Bool       // a topic is gone, and what waits for it counts no more
}

// counted is the messages of a level from first to before next.
type counted struct {
	first, next int64
	runs        []run
}

// run is messages that lie one behind the other and go to one topic; "" are none.
type run struct {
	topic string
	n     int64
}

// Waiting counts the delayed messages by the topic that they will go to. One is counted
// until its copy there can be read.
func (t *Timer) Waiting() (map[string]int64, error) {
	t.tally.mu.Lock()
	defer t.tally.mu.Unlock()
	if t.tally.stale.Swap(false) || t.tally.level == nil {
		t.tally.level, t.tally.names = make([]counted, len(t.mu.level)), make(map[string]string)
	}
	out := make(map[string]int64)
	for n := range t.tally.level {
		c := &t.tally.level[n]
		done, _ := t.progress(n)
		c.startAt(done)
		if err := t.count(n, c); err != nil {
			return nil, err
		}
		done, ahead := t.progress(n)
		c.startAt(done)
		c.addUp(ahead, out)
	}
	return out, nil
}

// progress is before what a level is done, and what else has left it, sorted.
func (t *Timer) progress(n int) (done int64, ahead []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.mu.level[n]
	return l.done, slices.Clone(l.ahead)
}

// startAt forgets what is before offset. An import may have set the level back.
func (c *counted) startAt(offset int64) {
	if offset < c.first || offset > c.next {
		*c = counted{first: offset, next: offset}
	}
	for len(c.runs) > 0 && c.first < offset {
		gone := min(c.runs[0].n, offset-c.first)
		c.first += gone
		if c.runs[0].n -= gone; c.runs[0].n == 0 {
			c.runs = c.runs[1:]
		}
	}
}

// count reads what has come since somebody asked last.
func (t *Timer) count(n int, c *counted) error {
	for {
		read := t.o.Store.Read(storage.ReadRequest{Topic: names.Schedule, QueueID: int32(n), Offset: c.next, MaxMessages: window, MaxBytes: 4 << 20})
		next := read.Next
		if read.Status == storage.Found {
			next = read.Records[0].QueueOffset
		}
		// What the log had no more when it was read is kept by now, or has left.
		if err := t.countKept(n, c, next); err != nil {
			read.Release()
			return err
		}
		for i := range read.Records {
			c.add(read.Records[i].QueueOffset, t.destination(read.Records[i].Bytes))
		}
		found, gone := read.Status == storage.Found, read.Status == storage.OffsetTooSmall || read.Status == storage.MessageWasRemoved
		read.Release()
		switch {
		case found:
		case gone && next > c.next:
			c.fill(next)
		default:
			return nil
		}
	}
}

// countKept counts the messages before end that are in the log no more.
func (t *Timer) countKept(n int, c *counted, end int64) error {
	var offsets []int64
	t.mu.Lock()
	for o := range t.mu.level[n].kept {
		if o >= c.next && o < end {
			offsets = append(offsets, o)
		}
	}
	t.mu.Unlock()
	slices.Sort(offsets)
	for _, o := range offsets {
		record, ok, err := t.o.State.Get(state.Timers, keyOfKept(n, o))
		if err != nil {
			return err
		}
		if ok { // else it has left since
			c.add(o, t.destination(record))
		}
	}
	return nil
}

// Gone notes that a topic was deleted.
func (t *Timer) Gone() { t.tally.stale.Store(true) }

// destination is the topic that a record waits to go to, "" for none.
func (t *Timer) destination(record []byte) string {
	var m message.Message
	if _, err := message.DecodeStored(record, &m); err != nil {
		return ""
	}
	name := m.Properties.Value(message.PropertyRealTopic)
	if cfg, ok := t.o.Topic(name); !ok || m.PhysicalOffset < cfg.Birth {
		return ""
	}
	if known, ok := t.tally.names[name]; ok {
		return known
	}
	name = strings.Clone(name) // the record's memory is the store's
	t.tally.names[name] = name
	return name
}

// add counts the message at offset, which is next or behind it.
func (c *counted) add(offset int64, topic string) {
	c.fill(offset)
	if last := len(c.runs) - 1; last >= 0 && c.runs[last].topic == topic {
		c.runs[last].n++
	} else {
		c.runs = append(c.runs, run{topic, 1})
	}
	c.next++
}

// fill notes that there is nothing up to offset.
func (c *counted) fill(offset int64) {
	if offset > c.next {
		c.runs = append(c.runs, run{"", offset - c.next})
		c.next = offset
	}
}

// addUp adds what is counted to out, without what has left.
func (c *counted) addUp(left []int64, out map[string]int64) {
	at := c.first
	for _, r := range c.runs {
		n := r.n
		for len(left) > 0 && left[0] < at+r.n {
			if left[0] >= at {
				n--
			}
			left = left[1:]
		}
		at += r.n
		if r.topic != "" && n > 0 {
			out[r.topic] += n
		}
	}
}
