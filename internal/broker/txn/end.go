package txn

import (
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Decision is what a producer, or an administrator, wants to become of a half message.
type Decision struct {
	Commit bool // else: roll back
	// QueueOffset and LogOffset are where the half message was stored first.
	QueueOffset, LogOffset int64
	// Group, Topic and UniqueID are compared with the half message's unless they are empty.
	Group, Topic, UniqueID string
	Held                   bool // as in publish.Request
}

func (d *Decision) outcome() Outcome {
	if d.Commit {
		return Committed
	}
	return RolledBack
}

// End decides a half message. done is called once, when the decision is stored.
func (t *Txn) End(d Decision, done func(error)) {
	h, err := t.find(&d)
	if err != nil {
		done(err)
		return
	}
	to := d.outcome()
	if to == Committed {
		if err := t.admit(h); err != nil {
			done(err)
			return
		}
	}
	f, err := t.depart(h, to, done)
	if f == nil {
		if err != nil {
			done(err)
		}
		return
	}
	stored := func(err error) { t.stored(h.first, f, err) }
	if to == Committed {
		t.o.Publish.Commit(h.message, h.topic, h.queue, sourceOf(to, h.first), d.Held, stored)
	} else {
		t.o.Publish.Op(opBody(h.at), sourceOf(to, h.first), t.o.Clock.NowMilli(), d.Held, t.opStored(stored))
	}
}

// half is a half message as it was read.
type half struct {
	message      *message.Message
	first, at    int64
	topic, group string
	queue        int32
}

// find reads the half message that a decision is about, and compares what the decision says
// of it.
func (t *Txn) find(d *Decision) (*half, error) {
	at, physical := d.QueueOffset, d.LogOffset
	t.mu.Lock()
	e := t.mu.open[d.QueueOffset]
	origin := int64(-1)
	if e != nil {
		origin, at, physical = e.origin, e.at, e.physical
	}
	t.mu.Unlock()
	if d.LogOffset < 0 || d.QueueOffset < 0 {
		return nil, fmt.Errorf("%w: commitLogOffset %d, tranStateTableOffset %d", ErrNotFound, d.LogOffset, d.QueueOffset)
	}
	if origin >= 0 && origin != d.LogOffset {
		// Which of the two offsets is wrong is told by what lies at the other one.
		if h, err := t.read(d.LogOffset); err == nil && h.at != d.QueueOffset {
			return nil, fmt.Errorf("%w: tranStateTableOffset is %d, the half message at %d has %d", ErrQueue, d.QueueOffset, d.LogOffset, h.at)
		}
		return nil, fmt.Errorf("%w: commitLogOffset is %d, no half message with tranStateTableOffset %d is there", ErrLog, d.LogOffset, d.QueueOffset)
	}
	h, err := t.read(physical)
	if err != nil {
		return nil, err
	}
	h.first = d.QueueOffset
	switch {
	case d.Group != "" && h.group != d.Group:
		return nil, fmt.Errorf("%w: it is %.64q, the half message is of another one", ErrGroup, d.Group)
	case h.at != at:
		return nil, fmt.Errorf("%w: tranStateTableOffset is %d, the half message at %d has %d", ErrQueue, d.QueueOffset, d.LogOffset, h.at)
	case d.Topic != "" && h.topic != d.Topic:
		return nil, fmt.Errorf("%w: the topic is %.64q, that of the half message is another one", ErrMessage, d.Topic)
	case d.UniqueID != "" && h.message.UniqueID() != d.UniqueID:
		return nil, fmt.Errorf("%w: the message id is %.64q, that of the half message is another one", ErrMessage, d.UniqueID)
	}
	return h, nil
}

// read reads a half message.
func (t *Txn) read(physical int64) (*half, error) {
	record, err := t.o.Store.ReadAt(physical)
	if err != nil {
		return nil, fmt.Errorf("%w: nothing is at commitLogOffset %d: %w", ErrNotFound, physical, err)
	}
	m := new(message.Message)
	if _, err := message.DecodeStored(record, m); err != nil {
		return nil, fmt.Errorf("%w: at commitLogOffset %d: %w", ErrNotFound, physical, err)
	}
	h := &half{message: m, at: m.QueueOffset, group: m.Properties.Value(message.PropertyProducerGroup)}
	var ok bool
	if h.topic, h.queue, ok = realPlace(m.Properties); !ok || m.Topic != names.Half {
		return nil, fmt.Errorf("%w: what is at commitLogOffset %d is no half message", ErrNotFound, physical)
	}
	return h, nil
}

// admit refuses a commit that has nowhere to go.
func (t *Txn) admit(h *half) error {
	cfg, ok := t.o.Topic(h.topic)
	if !ok || h.message.PhysicalOffset < cfg.Birth {
		return fmt.Errorf("%w: topic %s was deleted", ErrTopicGone, h.topic)
	}
	return nil
}

// depart begins the flight of a decision. There is none when the same one is made already:
// then done is called, now or when that is stored.
func (t *Txn) depart(h *half, to Outcome, done func(error)) (*flight, error) {
	p := t.lockPage(h.first)
	defer t.mu.Unlock()
	if f := t.mu.flying[h.first]; f != nil {
		switch {
		case f.to == to && f.stored:
			t.mu.Unlock()
			done(nil)
			t.mu.Lock()
			return nil, nil
		case f.to == to:
			f.wait = append(f.wait, done)
			return nil, nil
		case f.to != GivenUp:
			return nil, decided(h.first, f.to)
		}
		return nil, fmt.Errorf("%w: half message %d is being given up; try again", ErrBusy, h.first)
	}
	switch was := p.get(h.first % pageSize); was {
	case to:
		t.mu.Unlock()
		done(nil)
		t.mu.Lock()
		return nil, nil
	case Undecided, GivenUp:
	case Unknown:
		// Its producer may be quicker than the dispatcher; what is dispatched and not known
		// is of a time that nothing is known of.
		if h.first < t.mu.end {
			return nil, fmt.Errorf("%w: what became of the half message %d is not known any more", ErrNotFound, h.first)
		}
	default:
		return nil, decided(h.first, was)
	}
	f := &flight{to: to, topic: h.topic, after: time.Duration(max(t.o.Clock.NowMilli()-h.message.StoreTimestamp, 0)) * time.Millisecond, wait: []func(error){done}}
	t.mu.flying[h.first] = f
	p.held++
	return f, nil
}

func decided(first int64, was Outcome) error {
	return fmt.Errorf("%w: half message %d is %s, and the first decision stands", ErrDecided, first, was)
}

// stored ends the waiting for a decision that is in the log, or could not be written.
func (t *Txn) stored(first int64, f *flight, err error) {
	t.mu.Lock()
	wait := f.wait
	f.wait, f.stored = nil, err == nil
	if err != nil {
		t.landLocked(first, f.to)
	}
	t.mu.Unlock()
	if err != nil {
		t.told()
	} else if f.to != GivenUp {
		t.tally.ended(f.topic, f.to == Committed, f.after, t.o.Clock.NowMilli())
		if t.o.Events.Ended != nil {
			t.o.Events.Ended(f.topic, f.to == Committed, f.after)
		}
	}
	for _, done := range wait {
		done(err)
	}
}
