package pop

import (
	"encoding/binary"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// DropTopic adds to b the end of everything that groups know of a topic and of its retry
// topics (P8). From the call on nothing of it is written any more, so b must be committed.
// Its receipts are illegal afterwards.
func (p *Popper) DropTopic(topic string, b *state.Batch) {
	p.drop(b, func(k windowKey) bool {
		if k.topic == topic || strings.HasPrefix(k.topic, names.LitePrefix(topic)) {
			return true
		}
		origin, ok := names.OriginTopic(k.topic, k.group)
		return ok && origin == topic
	}, func(k subjectKey) bool {
		return k.topic == topic || strings.HasPrefix(k.topic, names.LitePrefix(topic))
	})
}

// DropGroup adds to b the end of everything that a group has popped.
func (p *Popper) DropGroup(group string, b *state.Batch) {
	p.drop(b, func(k windowKey) bool { return k.group == group }, func(k subjectKey) bool { return k.group == group })
}

func (p *Popper) drop(b *state.Batch, windows func(windowKey) bool, subjects func(subjectKey) bool) {
	var gone []*window
	p.mu.Lock()
	p.mu.floor = p.fresh()
	b.Put(state.Meta, metaLastPop, binary.BigEndian.AppendUint64(nil, uint64(p.mu.floor))) // after a restart as well
	for k, w := range p.mu.windows {
		if windows(k) {
			gone = append(gone, w)
			delete(p.mu.windows, k)
			delete(p.mu.byID, w.id)
		}
	}
	for k := range p.mu.subjects {
		if subjects(k) {
			delete(p.mu.subjects, k)
		}
	}
	p.mu.Unlock()
	for _, w := range gone {
		p.dropWindow(w, b)
	}
	p.dropForgotten(b, windows)
}
