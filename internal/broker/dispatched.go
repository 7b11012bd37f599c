package broker

import (
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// dispatched is told of every record once readers can see it, in log order, by the
// store's dispatcher, and by its recovery for what was not known to be dispatched. It
// must not block and holds no lock.
func (b *Broker) dispatched(records []storage.Dispatched) {
	b.countDispatched(records)
	for i := range records {
		d := &records[i]
		if d.Source != "" {
			b.left(d.Source)
		}
		switch d.Topic {
		case names.Schedule:
			b.Timer.Arrived(d.QueueID, d.StoreTimestamp)
			continue
		case names.Half:
			b.Txn.Arrived(d)
			continue
		case names.WheelTimer:
			b.Wheel.Arrived(d)
			continue
		case names.OpHalf:
			continue
		}
		if d.Light && b.Store != nil && names.IsLite(d.Topic) {
			b.Lite.Arrived(d.Topic)
		}
		b.LongPoll.Arrived(longpoll.Arrival{Topic: d.Topic, QueueID: d.QueueID, Offset: d.QueueOffset, TagsCode: d.TagsCode,
			Physical: d.PhysicalOffset, Size: d.Size, Traits: d.Traits})
	}
}

// left ends the state that a message was born from: its copy is in the log and visible
// (P6). Each owner knows its own names.
func (b *Broker) left(source string) {
	if b.Timer.Dispatched(source) || b.Wheel.Dispatched(source) || b.Txn.Dispatched(source) || b.Pop.Dispatched(source) || b.Admin.Dispatched(source) {
		return
	}
}
