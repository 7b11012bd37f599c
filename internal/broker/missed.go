package broker

import (
	"cmp"
	"slices"
	"sync"

	"github.com/bolidemq/bolide/internal/storage"
)

// Missed is how many messages of a topic were deleted with the log's files before a group
// came to them, or came to them again, since the broker was opened.
type Missed struct {
	Group, Topic string
	Messages     int64
}

// missed counts them. It has its own lock: the store deletes while requests run.
type missed struct {
	mu    sync.Mutex
	count map[[2]string]int64 // by group and topic
}

// Missed lists the groups that have missed something, sorted by group and topic.
func (b *Broker) Missed() []Missed {
	b.missed.mu.Lock()
	defer b.missed.mu.Unlock()
	out := make([]Missed, 0, len(b.missed.count))
	for k, n := range b.missed.count {
		out = append(out, Missed{Group: k[0], Topic: k[1], Messages: n})
	}
	slices.SortFunc(out, func(x, y Missed) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Topic, y.Topic))
	})
	return out
}

// countMissed follows the deletion of the log file with the offsets [first, end): a group
// misses what of it lies behind its offset, and one that pops, what it has not looked at;
// what it has it may still acknowledge. A group that has no offset in a topic begins where the
// topic does, and misses nothing.
func (b *Broker) countMissed(first, end int64, tell func(Missed)) {
	store := b.engine.Engine
	if store == nil {
		return // not open yet
	}
	type queueOf struct {
		group, topic string
		queue        int32
	}
	next := make(map[queueOf]int64)
	for _, f := range b.Pop.Figures(nil) {
		next[queueOf{f.Group, f.Topic, f.QueueID}] = f.Next
	}
	b.Offsets.Each(func(group, topic string, offsets map[int32]int64) {
		n := int64(0)
		for queue, off := range offsets {
			n += passedOver(store, topic, queue, max(off, next[queueOf{group, topic, queue}]), first, end)
		}
		if n > 0 {
			b.addMissed(group, topic, n, tell)
		}
	})
}

func (b *Broker) addMissed(group, topic string, n int64, tell func(Missed)) {
	b.missed.mu.Lock()
	if b.missed.count == nil {
		b.missed.count = make(map[[2]string]int64)
	}
	b.missed.count[[2]string{group, topic}] += n
	total := b.missed.count[[2]string{group, topic}]
	b.missed.mu.Unlock()
	if tell != nil {
		tell(Missed{Group: group, Topic: topic, Messages: total})
	}
}

// passedOver is how many of a queue's messages in the log file [first, end) are at off or
// later.
func passedOver(store *storage.Engine, topic string, queue int32, off, first, end int64) int64 {
	if off >= store.MaxOffset(topic, queue) {
		return 0 // the usual case asks no file
	}
	high := store.OffsetAt(topic, queue, end)
	if off >= high {
		return 0
	}
	return high - max(off, store.OffsetAt(topic, queue, first))
}
