package pop

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// asideEntry is a message below next that is to be delivered: set aside for a member with
// another filter, behind its message group, or given back.
type asideEntry struct {
	offset   int64
	tagsCode int64
	lastPop  int64 // popTime of its last delivery, 0 = never delivered
	group    uint64
	attempts int32
	anyTag   bool  // tagsCode is not known: it was given back
	unwanted int64 // since when no member wants it; not persisted

	// What an SQL filter asks; not persisted. Without it a member with such a filter has to
	// read the message.
	known      bool
	properties message.Properties
}

// learn takes what filters ask from the message itself.
func (e *asideEntry) learn(rec *storage.Record) {
	p, _ := message.PropertiesOf(rec.Bytes)
	e.anyTag, e.tagsCode, e.known, e.properties = false, rec.TagsCode, true, message.Properties(strings.Clone(string(p)))
}

// know takes over what another copy of the entry has learned.
func (e *asideEntry) know(o *asideEntry) {
	e.anyTag, e.tagsCode, e.known, e.properties = o.anyTag, o.tagsCode, o.known, o.properties
}

// sure reports whether the entry knows all that f asks.
func (e *asideEntry) sure(f *filter.Expression) bool {
	return f.MatchesAll() || !e.anyTag && (e.known || !f.ByProperties())
}

// mayMatch reports whether f wants the message, as far as the entry knows.
func (e *asideEntry) mayMatch(f *filter.Expression) bool {
	switch {
	case !e.sure(f):
		return true
	case f.ByProperties():
		return f.Match(e.properties)
	}
	return f.MatchTagsCode(e.tagsCode)
}

// setAsideLocked adds e, keeping the order.
func (w *window) setAsideLocked(e asideEntry) {
	at := len(w.mu.aside)
	if at > 0 && w.mu.aside[at-1].offset >= e.offset {
		at, _ = w.asideAtLocked(e.offset)
	}
	w.mu.aside = slices.Insert(w.mu.aside, at, e)
	w.mu.stuck = false
	w.mu.asideDirty = append(w.mu.asideDirty, e.offset)
}

func (w *window) asideAtLocked(offset int64) (int, bool) {
	return slices.BinarySearchFunc(w.mu.aside, offset, func(e asideEntry, o int64) int { return cmp.Compare(e.offset, o) })
}

// takeAsideLocked removes the entries of offsets, which are sorted.
func (w *window) takeAsideLocked(offsets []int64) {
	if len(offsets) == 0 {
		return
	}
	w.mu.asideDirty = append(w.mu.asideDirty, offsets...)
	i := 0
	w.mu.aside = slices.DeleteFunc(w.mu.aside, func(e asideEntry) bool {
		for i < len(offsets) && offsets[i] < e.offset {
			i++
		}
		return i < len(offsets) && offsets[i] == e.offset
	})
}

// unwantedFor is how long a message stays set aside when no member wants it any more: the
// member may be restarting.
const unwantedFor = 60_000

// mostDoubtful is how many messages that were set aside one attempt reads only to learn
// whether its filter wants them.
const mostDoubtful = 256

// selectAsideLocked picks what was set aside and this request may have. Once a second it
// looks for what nobody wants any more, which passes after a while.
func (t *taking) selectAsideLocked() (selected []asideEntry) {
	w, now := t.w, t.a.res.PopTime
	if len(w.mu.aside) == 0 {
		return nil
	}
	if t.order != nil && w.mu.stuck && t.q.Filter.MatchesAll() {
		t.order.trusting = true
		return nil
	}
	sweep := t.order == nil && now-w.mu.swept >= 1000
	if sweep {
		w.mu.swept = now
	}
	sure := 0
	for i := range w.mu.aside {
		e := &w.mu.aside[i]
		wanted := e.mayMatch(t.q.Filter)
		switch {
		case !wanted && t.order != nil:
			t.order.block(e.group)
		case wanted && t.order != nil:
			if len(selected) < t.want && t.order.admitLocked(e.group) {
				selected = append(selected, *e)
			} else {
				t.order.block(e.group)
			}
		case wanted:
			if sure < t.want && len(selected) < t.want+mostDoubtful {
				selected = append(selected, *e)
				if e.sure(t.q.Filter) {
					sure++
				}
			} else {
				t.a.more = t.a.more || sure < t.want
				if !sweep {
					return selected
				}
			}
			e.unwanted = 0
		case sweep && t.wantedByOthers(e.tagsCode, e.properties):
			e.unwanted = 0
		case sweep && e.unwanted == 0:
			e.unwanted = now
		case sweep && now-e.unwanted >= unwantedFor:
			t.passed = append(t.passed, e.offset)
		}
	}
	w.mu.stuck = t.order != nil && len(selected) == 0 && t.q.Filter.MatchesAll()
	return selected
}

// fromAside reads what was selected.
func (t *taking) fromAside(selected []asideEntry) {
	for i := range selected {
		e := &selected[i]
		if t.order != nil && t.order.refused[e.group] {
			continue
		}
		res := t.p.o.Store.Read(storage.ReadRequest{Topic: t.w.key.topic, QueueID: t.w.key.queue, Offset: e.offset, MaxMessages: 1})
		if res.Failed(e.offset) {
			// It stays set aside, and in an ordered queue nothing passes it.
			if t.a.missed = true; t.order != nil {
				t.full = true
				break
			}
			continue
		}
		if res.Status != storage.Found || res.Records[0].QueueOffset != e.offset {
			t.p.lost(t.w, e.offset)
			t.passed = append(t.passed, e.offset)
			res.Release()
			continue
		}
		rec := res.Records[0]
		if !e.sure(t.q.Filter) {
			e.learn(&rec)
			if !e.mayMatch(t.q.Filter) {
				t.learned = append(t.learned, *e)
				if t.order != nil {
					t.order.refuse(e.group, !slices.Contains(t.keys, e.group))
				}
				res.Release()
				continue
			}
		}
		if len(t.records) == t.want {
			res.Release()
			break
		}
		t.passed = append(t.passed, e.offset)
		t.minPop = max(t.minPop, e.lastPop+1)
		t.add(rec, e.group, e.attempts)
		t.bytes += len(rec.Bytes)
		t.a.res.held = append(t.a.res.held, res)
	}
	slices.Sort(t.passed)
}

// keep sets rec aside, or stops the scan in front of it when there is no room.
func (t *taking) keep(rec *storage.Record, key uint64, room int) bool {
	if len(t.aside) >= room+len(t.passed) {
		t.next, t.full = rec.QueueOffset, true
		return false
	}
	if t.order != nil && key == 0 {
		key = messageGroup(rec.Bytes)
		t.order.block(key)
	}
	e := asideEntry{offset: rec.QueueOffset, tagsCode: rec.TagsCode, group: key}
	if t.bySQL() {
		e.learn(rec)
	}
	t.aside = append(t.aside, e)
	return true
}

// alone reports whether every live member of the group has this request's filter.
func (t *taking) alone() bool {
	t.askOthers()
	for _, x := range t.others {
		if x.Text() != t.q.Filter.Text() || x.Kind() != t.q.Filter.Kind() {
			return false
		}
	}
	return true
}

// bySQL reports whether somebody in the group filters by more than tags.
func (t *taking) bySQL() bool {
	t.askOthers()
	return t.q.Filter.ByProperties() || slices.ContainsFunc(t.others, (*filter.Expression).ByProperties)
}

// askOthers finds the filters of the group's live members. One that can't be read wants
// nothing: its member is refused, too.
func (t *taking) askOthers() {
	if t.othersKnown {
		return
	}
	t.othersKnown = true
	for _, s := range t.p.o.Subscriptions(t.q.Group, t.q.Topic) {
		if x, err := t.p.o.Compile(s.Kind, s.Expression); err == nil {
			t.others = append(t.others, x)
		}
	}
}

// wantedByOthers reports whether a live subscription of the group takes what this
// request's filter refuses.
func (t *taking) wantedByOthers(code int64, p message.Properties) bool {
	t.askOthers()
	for _, x := range t.others {
		if x.ByProperties() && x.Match(p) || !x.ByProperties() && x.MatchTagsCode(code) {
			return true
		}
	}
	return false
}

// wakeOthers lets members look again for whom something was set aside.
func (t *taking) wakeOthers() {
	t.q.s.version.Add(1)
	if t.p.o.LongPoll == nil {
		return
	}
	for _, e := range t.aside {
		t.p.o.LongPoll.Arrived(longpoll.Arrival{Topic: t.q.Topic, QueueID: t.w.key.queue, Offset: math.MaxInt64, TagsCode: e.tagsCode})
	}
}
