package pop

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Inspection is what a group has of one queue, for people who look for a reason.
type Inspection struct {
	Topic     string // the real one
	QueueID   int32
	Ready     int64 // messages that it could be given now, as far as order allows
	InFlight  int
	Aside     int // set aside: for other filters, behind their message group, given back
	Next      int64
	Lowest    int64 // the lowest message that is not done
	End       int64
	Throttled bool  // a request went away because of popInflightMessageThreshold
	Oldest    int64 // when the message that is longest in flight was popped, 0: none is
	Held      []Held
	Blocked   []Blocked
}

// Held is one batch in flight.
type Held struct {
	InFlight
	MessageGroup string // of an ordered batch
}

// Blocked is a message group that waits for a message of its own to be done.
type Blocked struct {
	MessageGroup string
	Offset       int64 // the first of its messages in flight
	Holder       string
	Due          int64
	Waiting      int // its messages that are set aside behind it
}

// Inspect pictures what a group has of a topic and its retry topics, or, for the empty
// name, of all topics; of each queue it lists the limit batches that are longest in flight.
func (p *Popper) Inspect(group, topic string, limit int) (out []Inspection) {
	for _, w := range p.allWindows() {
		if w.key.group != group {
			continue
		}
		if origin, ok := names.OriginTopic(w.key.topic, group); topic != "" && w.key.topic != topic && !(ok && origin == topic) {
			continue
		}
		out = append(out, p.inspect(w, func(k int, _ *record) bool { return k < limit }))
	}
	slices.SortFunc(out, func(a, b Inspection) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.QueueID, b.QueueID))
	})
	return out
}

// InspectAt pictures what a group has of one queue by its real topic, and of what is in flight
// lists the batch that holds a message, if there is one.
func (p *Popper) InspectAt(group, topic string, queue int32, offset int64) []Inspection {
	w := p.window(windowKey{group, topic, queue})
	if w == nil || offset < 0 {
		return nil
	}
	return []Inspection{p.inspect(w, func(_ int, r *record) bool {
		return r.base == offset&^63 && r.live&(1<<(offset&63)) != 0
	})}
}

// inspect lists the batches in flight that are wanted; they are numbered by their age.
func (p *Popper) inspect(w *window, wanted func(k int, r *record) bool) Inspection {
	i := Inspection{Topic: w.key.topic, QueueID: w.key.queue, End: p.o.Store.MaxOffset(w.key.topic, w.key.queue)}
	if off, ok := p.pendingReset(w); ok {
		i.Next, i.Lowest, i.Ready = off, off, max(i.End-off, 0)
		return i
	}
	type busy struct {
		first   *record
		waiting int
	}
	groups := make(map[uint64]*busy)
	w.mu.Lock()
	i.InFlight, i.Aside, i.Next, i.Lowest, i.Throttled = w.mu.inFlight, len(w.mu.aside), w.mu.next, w.lowestLocked(), w.mu.refused
	var held []*record
	for _, b := range w.mu.blocks {
		held = append(held, b.recs...)
	}
	slices.SortFunc(held, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.popTime, b.popTime), cmp.Compare(a.base, b.base))
	})
	if len(held) > 0 {
		i.Oldest = held[0].popTime
	}
	var keys []uint64
	for k, r := range held {
		key := uint64(0)
		if r.more != nil {
			key = r.more.group
		}
		if key != 0 {
			g := groups[key]
			if g == nil {
				g = &busy{first: r}
				groups[key] = g
			}
			if r.lowest() < g.first.lowest() {
				g.first = r
			}
		}
		if wanted(k, r) {
			i.Held = append(i.Held, Held{InFlight: p.inFlight(r)})
			keys = append(keys, key)
		}
	}
	for _, e := range w.mu.aside {
		if g := groups[e.group]; g != nil {
			g.waiting++
		}
	}
	for key, g := range groups {
		if g.waiting > 0 {
			i.Blocked = append(i.Blocked, Blocked{Offset: g.first.lowest(), Holder: p.holders.name(g.first.holder), Due: g.first.due, Waiting: g.waiting})
			keys = append(keys, key)
		}
	}
	blockedAside := 0
	for _, b := range i.Blocked {
		blockedAside += b.Waiting
	}
	w.mu.Unlock()
	i.Ready = max(i.End-i.Next, 0) + int64(i.Aside-blockedAside)
	slices.SortFunc(i.Blocked, func(a, b Blocked) int { return cmp.Compare(a.Offset, b.Offset) })
	p.nameGroups(w.key, &i, keys)
	return i
}

// nameGroups looks up what the message groups are called: records know a number only.
func (p *Popper) nameGroups(k windowKey, i *Inspection, keys []uint64) {
	for n := range i.Held {
		if keys[n] != 0 {
			i.Held[n].MessageGroup = p.messageGroupAt(k, i.Held[n].Offsets[0])
		}
	}
	for n := range i.Blocked {
		i.Blocked[n].MessageGroup = p.messageGroupAt(k, i.Blocked[n].Offset)
	}
}

func (p *Popper) messageGroupAt(k windowKey, offset int64) string {
	res := p.o.Store.Read(storage.ReadRequest{Topic: k.topic, QueueID: k.queue, Offset: offset, MaxMessages: 1})
	defer res.Release()
	var m message.Message
	if res.Status != storage.Found || res.Records[0].QueueOffset != offset {
		return ""
	}
	if _, err := message.DecodeStored(res.Records[0].Bytes, &m); err != nil {
		return ""
	}
	return string([]byte(m.Properties.Value(message.PropertyShardingKey)))
}

func (r *record) lowest() int64 { return r.offset(bits.TrailingZeros64(r.live)) }
