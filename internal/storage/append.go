package storage

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/storage/keyindex"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// note is what the dispatcher has to know of a record, found while its properties were at
// hand: the dispatcher reads no record.
type note struct {
	queue    *consumequeue.Queue // nil: the record belongs to no queue
	tagsCode int64
	delay    time.Duration // > 0: the tags code is the store time plus this
	sysFlag  int32
	tag      string
	source   string
	lights   []light
	due      int64  // of a timer
	relative bool   // due is the end of a delay
	real     string // the topic that a timer is for
	traits   filter.Traits
	keys     int // in hashes; more keys are all in more
	hashes   [3]int32
	more     []int32
}

func (n *note) keyHashes() []int32 {
	if n.more != nil {
		return n.more
	}
	return n.hashes[:n.keys]
}

// encoder is what one append works with outside the log's lock.
type encoder struct {
	buf []byte
	put commitlog.Put[note]
	msg message.Message
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// maxKeptBuffer is the largest encoding buffer that is kept for the next append.
const maxKeptBuffer = 256 << 10

func (c *encoder) release() {
	if cap(c.buf) > maxKeptBuffer {
		c.buf = nil
	}
	c.put = commitlog.Put[note]{Notes: c.put.Notes[:0], Sizes: c.put.Sizes[:0]}
	c.msg = message.Message{}
	encoders.Put(c)
}

// Append puts m at the log's end. m and its body may be reused when it returns. done is
// called once: from the log's writer in log order, or before Append returns when the
// message is refused. Append waits only while the open buffers are full.
func (e *Engine) Append(m *message.Message, done func(Placed, error)) {
	e.place(m, false, done)
}

// AppendHeld is Append by a caller that has a round open, whose end settles it.
func (e *Engine) AppendHeld(m *message.Message, done func(Placed, error)) {
	e.place(m, true, done)
}

// Settle writes what a round that has ended may have held back; it calls done functions and
// Options.OnDispatch.
func (e *Engine) Settle() { e.log.Settle() }

// SettleAll is Settle for a loop, which has time for however much it is.
func (e *Engine) SettleAll() { e.log.SettleAll() }

func (e *Engine) place(m *message.Message, held bool, done func(Placed, error)) {
	c := encoders.Get().(*encoder)
	c.put.Held = held
	err := e.append(c, m, done)
	c.release()
	if err != nil {
		done(Placed{}, err)
	}
}

func (e *Engine) append(c *encoder, m *message.Message, done func(Placed, error)) error {
	if err := e.admit(); err != nil {
		return err
	}
	if err := e.encode(c, m); err != nil {
		return err
	}
	p := &c.put
	q := e.describe(&p.Note, m)
	p.Records, p.QueueID, p.Done, p.Sizes, p.Notes = c.buf, m.QueueID, done, nil, nil
	if p.Beside != nil {
		p.Note.lights = e.lightsOf(m)
		p.Note.traits = 0 // their offsets become properties
	}
	if q != nil {
		p.Next = &q.Next
	}
	return e.log.Append(p)
}

// admit refuses appends while the disk is over its watermark, or has no room for the state.
func (e *Engine) admit() error {
	if e.full.Load() {
		return ErrDiskFull
	}
	if err := e.opt.Full(); err != nil {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return nil
}

// Refusal is why appends are refused now, nil when they are not.
func (e *Engine) Refusal() error {
	if err := e.admit(); err != nil {
		return err
	}
	return e.log.Refusal()
}

// AppendBatch puts all of ms, for one topic and queue, side by side with consecutive
// queue offsets, or none of them.
func (e *Engine) AppendBatch(ms []*message.Message, done func([]Placed, error)) {
	c := encoders.Get().(*encoder)
	err := e.appendBatch(c, ms, done)
	c.release()
	if err != nil {
		done(nil, err)
	}
}

func (e *Engine) appendBatch(c *encoder, ms []*message.Message, done func([]Placed, error)) error {
	if err := e.admit(); err != nil {
		return err
	}
	p := &c.put
	c.buf = c.buf[:0]
	placed := make([]Placed, len(ms))
	for i, m := range ms {
		if m.Topic != ms[0].Topic || m.QueueID != ms[0].QueueID {
			return fmt.Errorf("a batch goes to one queue, not to %s/%d and %s/%d", ms[0].Topic, ms[0].QueueID, m.Topic, m.QueueID)
		}
		start := len(c.buf)
		if err := e.encodeMore(c, m); err != nil {
			return err
		}
		var n note
		if q := e.describe(&n, m); q != nil {
			p.Next = &q.Next
		}
		p.Sizes = append(p.Sizes, int32(len(c.buf)-start))
		p.Notes = append(p.Notes, n)
		placed[i] = Placed{PhysicalOffset: int64(start), QueueOffset: int64(i), QueueID: m.QueueID, Size: int32(len(c.buf) - start)}
	}
	p.Records, p.QueueID = c.buf, ms[0].QueueID
	p.Done = func(first Placed, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		for i := range placed {
			placed[i].PhysicalOffset += first.PhysicalOffset
			placed[i].QueueOffset += first.QueueOffset
			placed[i].StoreTimestamp = first.StoreTimestamp
		}
		done(placed, nil)
	}
	return e.log.Append(p)
}

func (e *Engine) encode(c *encoder, m *message.Message) error {
	c.buf = c.buf[:0]
	return e.encodeMore(c, m)
}

func (e *Engine) encodeMore(c *encoder, m *message.Message) (err error) {
	if len(m.Body) > e.opt.MaxMessageSize {
		return fmt.Errorf("%w: the body has %d bytes, the limit is %d", ErrMessageTooLarge, len(m.Body), e.opt.MaxMessageSize)
	}
	if len(m.Properties) > message.MaxProperties {
		return fmt.Errorf("%w: they have %d bytes, the limit is %d", ErrPropertiesTooLarge, len(m.Properties), message.MaxProperties)
	}
	if !m.StoreHost.IsValid() {
		c.msg = *m
		c.msg.StoreHost = e.opt.StoreHost
		m = &c.msg
	}
	start := len(c.buf)
	store := message.AppendStored
	if e.opt.RecordCRC || c.put.Beside != nil || strings.Contains(string(m.Properties), message.PropertySource) {
		// A copy ends the state that it came from. Were its properties torn in a power cut
		// while its body is whole, recovery would take it for a message of its own, so these
		// records carry a checksum of all their bytes; and so do those that get into further
		// queues, whose offsets stand in the properties.
		store = message.AppendStoredCRC
	}
	if c.buf, err = store(c.buf, m); err != nil {
		return err
	}
	if size, most := len(c.buf)-start, e.opt.MaxMessageSize+recordSlack; size > most {
		return fmt.Errorf("%w: the record has %d bytes, the limit is %d", ErrMessageTooLarge, size, most)
	}
	return nil
}

// describe fills in n from a message's header and properties, and finds its queue.
func (e *Engine) describe(n *note, m *message.Message) *consumequeue.Queue {
	*n = note{sysFlag: m.SysFlag}
	kind := message.TransactionType(m.SysFlag)
	if kind != message.SysTransactionPrepared && kind != message.SysTransactionRollback {
		n.queue = e.queues.Make(m.Topic, m.QueueID)
	}
	var topicHash int32
	if n.queue != nil {
		topicHash = n.queue.Topic.KeyHash
	} else {
		topicHash = keyindex.TopicHash(m.Topic)
	}
	timer := false
	for rest := string(m.Properties); rest != ""; {
		pair := rest
		if i := strings.IndexByte(rest, valueEnd); i >= 0 {
			pair, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		i := strings.IndexByte(pair, nameEnd)
		if i <= 0 || i == len(pair)-1 {
			continue
		}
		n.traits.Add(pair, i)
		value := pair[i+1:]
		switch pair[:i] {
		case message.PropertyTags:
			if n.tag == "" {
				n.tag = e.tags.intern(value)
				if n.delay == 0 {
					n.tagsCode = message.TagsCode(n.tag)
				}
			}
		case message.PropertyUniqKey:
			n.addKey(topicHash, value)
		case message.PropertyKeys:
			for word := range strings.FieldsFuncSeq(value, isSpace) {
				n.addKey(topicHash, word)
			}
		case message.PropertyDelay:
			if m.Topic == names.Schedule {
				n.delay = e.delayOf(value)
			}
		case message.PropertyTimerOutMs:
			timer = timer || m.Topic == names.WheelTimer
		case PropertySource:
			n.source = strings.Clone(value)
		}
	}
	n.traits = max(n.traits, filter.Unremarkable)
	if timer {
		e.describeTimer(n, m.Properties)
	}
	if timer || n.delay > 0 {
		n.traits = 0 // nobody reads these by a filter
	}
	if kind == message.SysTransactionRollback {
		n.keys, n.more = 0, nil
	}
	return n.queue
}

// describeTimer fills in when a timer is due and for which topic. One that takes another back
// is never due.
func (e *Engine) describeTimer(n *note, p message.Properties) {
	if p.Has(message.PropertyTimerDeleteUniqKey) {
		return
	}
	n.due, _ = message.TimerDue(p)
	n.relative = message.TimerDelayed(p)
	n.real = e.tags.intern(p.Value(message.PropertyRealTopic))
}

// The separators of the properties text.
const (
	nameEnd  = 1
	valueEnd = 2
)

func isSpace(r rune) bool { return r == ' ' }

func (n *note) addKey(topicHash int32, key string) {
	h := keyindex.Hash(topicHash, key)
	switch {
	case n.more != nil:
		n.more = append(n.more, h)
	case n.keys < len(n.hashes):
		n.hashes[n.keys] = h
		n.keys++
	default:
		n.more = append(append(make([]int32, 0, 8), n.hashes[:]...), h)
	}
}

// delayOf is the delay of a level, that of the last one for higher levels.
func (e *Engine) delayOf(level string) time.Duration {
	n, err := strconv.Atoi(level)
	if err != nil || n <= 0 || len(e.opt.DelayLevels) == 0 {
		return 0
	}
	return e.opt.DelayLevels[min(n, len(e.opt.DelayLevels))-1]
}

// tagNames keeps one copy of each tag that is in use, so that a record's tag outlives the
// buffer it came in without a copy of its own.
type tagNames struct {
	mu   sync.RWMutex
	name map[string]string
}

// maxTagNames bounds what is kept; tags beyond it are copied one by one.
const maxTagNames = 4096

func (t *tagNames) intern(tag string) string {
	t.mu.RLock()
	kept, ok := t.name[tag]
	t.mu.RUnlock()
	if ok {
		return kept
	}
	kept = strings.Clone(tag)
	t.mu.Lock()
	if t.name == nil {
		t.name = make(map[string]string)
	}
	if len(t.name) < maxTagNames {
		t.name[kept] = kept
	}
	t.mu.Unlock()
	return kept
}
