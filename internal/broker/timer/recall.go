package timer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Why a message is not taken back; what was wrong exactly is wrapped around them.
var (
	ErrRecallOff     = errors.New("recall is switched off: recallMessageEnable is false")
	ErrRecallIllegal = errors.New("illegal recall handle")
	ErrRecallLate    = errors.New("too late to recall")
	ErrRecallUnknown = errors.New("nothing to recall")
	ErrRecallBusy    = errors.New("the message is on its way to another place in the log, try again")
)

// recallTag marks the records that take a message back, as at Apache RocketMQ.
const recallTag = "_RECALL_TAG_"

// Recall takes a message back before it is due. handle is what its send was answered with,
// group the caller's. done gets the message's unique key. Once done was called without an
// error the message is never delivered, and a second recall says the same. A send that the
// client has repeated has left several: all are taken back.
//
// The record that says so is the commit point: what lies before it in the log, a copy or a
// recall, has won. While it is under way the place is claimed, so that no copy is made.
func (w *Wheel) Recall(topic, handle, group string, done func(id string, err error)) {
	h, err := w.checkRecall(topic, handle)
	if err != nil {
		done("", err)
		return
	}
	found, err := w.findRecalled(h)
	if err != nil {
		done("", err)
		return
	}
	all := &together{left: len(found.places) + 1, done: func(err error) {
		if err != nil {
			done("", err)
			return
		}
		done(h.UniqKey, nil)
	}}
	for _, p := range found.places {
		w.recallPlace(p, h, group, all.one)
	}
	all.one(nil)
}

// together waits for the ends of several recalls; the first error counts.
type together struct {
	mu   sync.Mutex
	left int
	err  error
	done func(error)
}

func (t *together) one(err error) {
	t.mu.Lock()
	if t.err == nil {
		t.err = err
	}
	t.left--
	last := t.left == 0
	t.mu.Unlock()
	if last {
		t.done(t.err)
	}
}

// recallPlace takes what waits at a place back.
func (w *Wheel) recallPlace(p place, h message.RecallHandle, group string, done func(error)) {
	claimed, err := w.claimFound(p, h, done)
	switch {
	case errors.Is(err, ErrRecallLate):
		done(w.becameOf(p, h, err))
	case err != nil:
		done(err)
	case claimed:
		end := func(err error) { w.recalled(p, err) }
		w.o.Publish.Restore(w.recallRecord(p, h, group), false, func() { w.end(p) }, end)
	}
}

// claimFound claims a place that was found by a key. That may have been indexed before the wheel
// was told of the place.
func (w *Wheel) claimFound(p place, h message.RecallHandle, done func(error)) (claimed bool, err error) {
	claimed, err = w.claimRecall(p, h, done)
	if errors.Is(err, ErrRecallLate) {
		w.o.Store.CatchUp()
		claimed, err = w.claimRecall(p, h, done)
	}
	return claimed, err
}

// becameOf is the answer for a place where nothing waits any more, as the log that was
// dispatched until now tells it: late, unless a recall or a move was faster.
func (w *Wheel) becameOf(p place, h message.RecallHandle, late error) error {
	found, err := w.lookUp(h)
	switch {
	case err != nil && !errors.Is(err, storage.ErrCrowdedHash):
		return err
	case found.back(p):
		return nil
	case found.moved[p]:
		return ErrRecallBusy
	}
	return late
}

// checkRecall reads a handle and refuses what is not of this broker and topic.
func (w *Wheel) checkRecall(topic, handle string) (h message.RecallHandle, err error) {
	settings := w.o.Broker.Get()
	if !settings.RecallMessageEnable {
		return h, ErrRecallOff
	}
	if _, ok := w.o.Topic(topic); !ok {
		return h, fmt.Errorf("%w: %s", publish.ErrTopicNotFound, topic)
	}
	if h, err = message.ParseRecallHandle(handle); err != nil {
		return h, fmt.Errorf("%w: %w", ErrRecallIllegal, err)
	}
	if h.Topic != topic {
		return h, fmt.Errorf("%w: it is of topic %.200q, the request of %s", ErrRecallIllegal, h.Topic, topic)
	}
	if h.Broker != settings.BrokerName {
		return h, fmt.Errorf("%w: it is of broker %.200q, this one is %s", ErrRecallIllegal, h.Broker, settings.BrokerName)
	}
	return h, nil
}

// found is what the log has of a message.
type found struct {
	places   []place        // where it waits, or did last; several where its send was repeated
	recalled map[place]bool // taken back from there
	moved    map[place]bool // gone on from there to another place
	all      bool           // another server has taken it back
}

func (f *found) back(p place) bool { return f.all || f.recalled[p] }

func (f *found) nothing() bool { return len(f.places) == 0 && len(f.recalled) == 0 && !f.all }

// findRecalled finds the message of a handle.
func (w *Wheel) findRecalled(h message.RecallHandle) (*found, error) {
	f, err := w.lookUp(h)
	if err == nil && f.nothing() {
		w.o.Store.CatchUp() // the send may have been answered before its keys were indexed
		f, err = w.lookUp(h)
	}
	crowded := errors.Is(err, storage.ErrCrowdedHash)
	switch {
	case crowded && f.nothing():
		return nil, fmt.Errorf("%w: %w", ErrRecallUnknown, err)
	case crowded: // the newest came first, so what became of what was found was found, too
	case err != nil:
		return nil, fmt.Errorf("find the message of a recall handle: %w", err)
	case f.nothing():
		return nil, fmt.Errorf("%w: no message %.200q of topic %s was for %s, or it is gone long since", ErrRecallUnknown, h.UniqKey, h.Topic, inTime(h.Due))
	}
	return f, nil
}

func inTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000 UTC") }

func (w *Wheel) lookUp(h message.RecallHandle) (*found, error) {
	f := &found{recalled: make(map[place]bool), moved: make(map[place]bool)}
	records, err := w.o.Store.QueryKey(names.WheelTimer, h.UniqKey, 0, 0, math.MaxInt64)
	for i := range records {
		var m message.Message
		if _, err := message.DecodeStored(records[i].Bytes, &m); err != nil || m.Properties.Value(message.PropertyRealTopic) != h.Topic ||
			m.UniqueID() != h.UniqKey {
			continue
		}
		due, ok := message.TimerDue(m.Properties)
		out, _ := strconv.ParseInt(m.Properties.Value(message.PropertyTimerOutMs), 10, 64)
		if !ok || due != h.Due && out != message.TimerOut(h.Due) {
			continue
		}
		of, ours := placeOfSource(m.Properties.Value(message.PropertySource))
		if m.Properties.Has(message.PropertyTimerDeleteUniqKey) {
			f.recalled[of] = ours
			f.all = f.all || !ours
			continue
		}
		f.places = append(f.places, place{due, m.QueueOffset})
		if ours {
			f.moved[of] = true
		}
	}
	f.places = slices.DeleteFunc(f.places, func(p place) bool { return f.moved[p] })
	return f, err
}

// claimRecall claims a place for a recall. Where another recall has it, done is called with
// what becomes of that one, and there is no claim.
func (w *Wheel) claimRecall(p place, h message.RecallHandle, done func(error)) (claimed bool, err error) {
	m := &w.mu
	m.Lock()
	defer m.Unlock()
	if c, claimed := m.claims[p]; claimed {
		switch {
		case c.recalls != nil:
			c.recalls = append(c.recalls, done)
			m.claims[p] = c
			return false, nil
		case !c.delivery:
			return false, ErrRecallBusy
		}
	} else if e, ok := w.findLocked(p); ok {
		m.claims[p] = claim{entry: e, recalls: []func(error){done}}
		return true, nil
	}
	return false, fmt.Errorf("%w: the message was for %s and has been delivered", ErrRecallLate, inTime(h.Due))
}

// recalled tells those who asked for it what became of a recall. One that has come to nothing
// gives its claim up at once: who comes then begins anew.
func (w *Wheel) recalled(p place, err error) {
	w.mu.Lock()
	var tell []func(error)
	if c, claimed := w.mu.claims[p]; claimed {
		tell, c.recalls = c.recalls, c.recalls[:0:0] // who comes now is told when it is dispatched
		w.mu.claims[p] = c
	}
	if err != nil {
		w.releaseLocked(p)
	}
	w.mu.Unlock()
	for _, done := range tell {
		done(err)
	}
}

// recallRecord is what takes a message back, in Apache's form.
func (w *Wheel) recallRecord(p place, h message.RecallHandle, group string) *message.Message {
	now := w.o.Clock.NowMilli()
	m := &message.Message{Topic: names.WheelTimer, Body: []byte("0"), BornTimestamp: now, BornHost: w.o.Host, StoreHost: w.o.Host}
	m.Properties = m.Properties.WithAll(
		message.PropertyTags, recallTag,
		message.PropertyUniqKey, h.UniqKey,
		message.PropertyTimerDeleteUniqKey, h.UniqKey,
		message.PropertyTimerDeliverMs, strconv.FormatInt(h.Due, 10),
		message.PropertyTimerOutMs, strconv.FormatInt(message.TimerOut(h.Due), 10),
		message.PropertyRealTopic, h.Topic,
		message.PropertyRealQueue, "0",
		message.PropertySource, p.source())
	if group != "" {
		m.Properties = m.Properties.With(message.PropertyProducerGroup, group)
	}
	return m
}
