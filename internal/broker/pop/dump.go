package pop

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// InFlight is one record, for people and tests.
type InFlight struct {
	Offsets   []int64
	PopTime   int64
	Due       int64
	Invisible int64
	Holder    string
	Renewed   bool
	Claimed   bool
	Suspended bool
	Failures  int
	Attempts  int32
}

// View is what a group knows of one queue, for people and tests.
type View struct {
	Group, Topic string
	QueueID      int32
	Next         int64
	Lowest       int64
	InFlight     []InFlight
	Aside        []int64
}

// Dump is a picture of all windows that match, sorted. Each window is of one moment.
func (p *Popper) Dump(match func(group, topic string) bool) []View {
	var out []View
	for _, w := range p.allWindows() {
		if match != nil && !match(w.key.group, w.key.topic) {
			continue
		}
		out = append(out, p.view(w))
	}
	slices.SortFunc(out, func(a, b View) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.QueueID, b.QueueID))
	})
	return out
}

func (p *Popper) view(w *window) View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := View{Group: w.key.group, Topic: w.key.topic, QueueID: w.key.queue, Next: w.mu.next, Lowest: w.lowestLocked()}
	for _, b := range w.mu.blocks {
		for _, r := range b.recs {
			v.InFlight = append(v.InFlight, p.inFlight(r))
		}
	}
	slices.SortFunc(v.InFlight, func(a, b InFlight) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.PopTime, b.PopTime))
	})
	for _, e := range w.mu.aside {
		v.Aside = append(v.Aside, e.offset)
	}
	return v
}

// inFlight pictures one record. Its window is locked.
func (p *Popper) inFlight(r *record) InFlight {
	f := InFlight{
		PopTime: r.popTime, Due: r.due, Invisible: r.invisible, Holder: p.holders.name(r.holder),
		Renewed: r.flags&flagRenew != 0, Claimed: r.flags&flagClaimed != 0, Suspended: r.flags&flagSuspend != 0,
	}
	for m := r.live; m != 0; m &= m - 1 {
		f.Offsets = append(f.Offsets, r.offset(bits.TrailingZeros64(m)))
	}
	if r.more != nil {
		f.Failures, f.Attempts = r.more.failures, r.more.attempts
	}
	return f
}

// Counts of one group and topic, its retry topics included.
type Counts struct {
	InFlight, Aside int
}

// Count adds up what a group has in flight or set aside of a topic by its real name.
func (p *Popper) Count(group, topic string) (c Counts) {
	for _, w := range p.allWindows() {
		if w.key.group != group || w.key.topic != topic {
			continue
		}
		w.mu.Lock()
		c.InFlight += w.mu.inFlight
		c.Aside += len(w.mu.aside)
		w.mu.Unlock()
	}
	return c
}

// Figures are those of one queue of a group, of one moment. What is below Next and neither
// in flight nor set aside is done.
type Figures struct {
	Group, Topic    string // the real topic, a retry topic for redeliveries
	QueueID         int32
	Next            int64
	Lowest          int64 // the lowest message that is not done
	InFlight, Aside int
	Blocked         int   // of those set aside, how many wait for a message group
	FirstFree       int64 // the lowest message that could be handed out; Next if none is set aside
}

// Figures lists all queues that the groups that match have popped from; nil: all groups.
func (p *Popper) Figures(match func(group string) bool) []Figures {
	var out []Figures
	for _, w := range p.allWindows() {
		if match != nil && !match(w.key.group) {
			continue
		}
		reset, pending := p.pendingReset(w)
		w.mu.Lock()
		if !w.mu.known { // it was looked at, and never popped
			w.mu.Unlock()
			continue
		}
		if pending {
			w.mu.Unlock()
			out = append(out, Figures{Group: w.key.group, Topic: w.key.topic, QueueID: w.key.queue, Next: reset, Lowest: reset, FirstFree: reset})
			continue
		}
		f := Figures{Group: w.key.group, Topic: w.key.topic, QueueID: w.key.queue, Next: w.mu.next, Lowest: w.lowestLocked(),
			InFlight: w.mu.inFlight, Aside: len(w.mu.aside), FirstFree: w.mu.next}
		for i := range w.mu.aside {
			switch e := &w.mu.aside[i]; {
			case w.mu.busy[e.group] > 0:
				f.Blocked++
			case f.FirstFree == w.mu.next:
				f.FirstFree = e.offset
			}
		}
		w.mu.Unlock()
		out = append(out, f)
	}
	return out
}

// Check looks for contradictions: what is past the end of its queue (P4), and messages in
// two states at once (P5).
func (p *Popper) Check() error {
	for _, v := range p.Dump(nil) {
		end := p.o.Store.MaxOffset(v.Topic, v.QueueID)
		fault := func(what string, off int64) error {
			return fmt.Errorf("POP of group %s, topic %s, queue %d: offset %d %s", v.Group, v.Topic, v.QueueID, off, what)
		}
		if v.Next > end {
			return fault(fmt.Sprintf("is next, beyond the end %d", end), v.Next)
		}
		state := make(map[int64]string)
		note := func(off int64, what string) error {
			if other, twice := state[off]; twice {
				return fault("is "+other+" and "+what, off)
			}
			state[off] = what
			if off >= v.Next {
				return fault("is "+what+" and not yet read", off)
			}
			return nil
		}
		for _, f := range v.InFlight {
			for _, off := range f.Offsets {
				if err := note(off, "in flight"); err != nil {
					return err
				}
			}
		}
		for _, off := range v.Aside {
			if err := note(off, "set aside"); err != nil {
				return err
			}
		}
	}
	return nil
}
