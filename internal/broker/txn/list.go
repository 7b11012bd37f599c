package txn

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Undecidedness is one open half message.
type Undecidedness struct {
	QueueOffset, LogOffset int64 // as a decision has to name it
	Topic, Group, UniqueID string
	Stored                 int64 // ms
	Due                    int64 // ms, of the next check
	Checks                 int32
	Size                   int32
}

// List returns the oldest open half messages, of a topic and a group where these are not
// empty, and how many there are.
func (t *Txn) List(topic, group string, most int) (list []Undecidedness, total int) {
	t.lookAtAll()
	var found []entry
	t.mu.Lock()
	for _, e := range t.mu.open {
		if (topic == "" || e.topic == topic) && (group == "" || e.group == group) {
			found = append(found, *e)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(found, func(a, b entry) int { return int(a.first - b.first) })
	for i := range found[:min(len(found), max(most, 0))] {
		e := &found[i]
		u := Undecidedness{QueueOffset: e.first, LogOffset: e.origin, Topic: e.topic, Group: e.group, Stored: e.stored, Due: e.due, Checks: e.checks, Size: e.size}
		if e.origin < 0 {
			u.LogOffset = e.physical // any will do
		}
		if p, ok := t.o.Store.PropertiesAt(e.physical, e.size); ok {
			u.UniqueID = p.Value(message.PropertyUniqKey)
		}
		list = append(list, u)
	}
	return list, len(found)
}

// Oldest is when the oldest open half message of each topic was stored.
func (t *Txn) Oldest() map[string]int64 {
	t.lookAtAll()
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]int64)
	for _, e := range t.mu.open {
		if at, ok := out[e.topic]; !ok || e.stored < at {
			out[e.topic] = e.stored
		}
	}
	return out
}

// Resume has a half message asked about again as if it were new. record is where it is in the
// log: in the half topic while it is open, or in the topic of those that were given up.
func (t *Txn) Resume(record int64, done func(error)) {
	bytes, err := t.o.Store.ReadAt(record)
	m := new(message.Message)
	if err == nil {
		_, err = message.DecodeStored(bytes, m)
	}
	if err != nil {
		done(fmt.Errorf("%w: at log offset %d: %w", ErrNotFound, record, err))
		return
	}
	_, _, whole := realPlace(m.Properties)
	to, first, ours := parseSource(m.Properties.Value(message.PropertySource))
	switch {
	case whole && m.Topic == names.Half:
		if ours && to == Moved {
			t.renew(first, done)
		} else {
			t.renew(m.QueueOffset, done)
		}
	case !whole || m.Topic != names.TransCheckMaxTime:
		done(fmt.Errorf("%w: what is at log offset %d, in topic %.64q, is no half message", ErrNotFound, record, m.Topic))
	case ours && to == GivenUp:
		t.takeUp(m, first, done)
	default: // another server has given it up
		t.takeUp(m, -1, done)
	}
}

// renew resets the checks of an open half message.
func (t *Txn) renew(first int64, done func(error)) {
	t.lookAtAll()
	p := t.lockPage(first)
	e, was := t.mu.open[first], p.get(first%pageSize)
	if e != nil {
		e.checks = 0
		t.touchLocked(e)
	}
	t.mu.Unlock()
	if e == nil {
		done(decided(first, was))
		return
	}
	done(nil)
}

// takeUp writes a half message that was given up once more in the half topic.
func (t *Txn) takeUp(m *message.Message, first int64, done func(error)) {
	source := ""
	if first >= 0 {
		p := t.lockPage(first)
		was := p.get(first % pageSize)
		t.mu.Unlock()
		switch was {
		case GivenUp:
		case Undecided: // it was taken up already
			t.renew(first, done)
			return
		default:
			done(decided(first, was))
			return
		}
		source = sourceOf(Moved, first)
	}
	m.Properties = m.Properties.With(message.PropertyTransactionCheckTimes, strconv.Itoa(0))
	t.o.Publish.Rehalve(m, source, func(_ storage.Placed, err error) { done(err) })
}
