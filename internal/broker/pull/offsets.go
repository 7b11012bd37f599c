package pull

import (
	"fmt"
	"sync"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// groupTopic names a group's reading of a topic.
type groupTopic struct{ group, topic string }

// starts remembers since when this process knows that a group reads a topic. What a
// group has no offset for is new to it when the queue's first message is younger than
// that: a queue that was added later begins at its beginning, and the history of an old
// one is left to the group's own choice of where to begin (R059).
type starts struct {
	opened int64 // when this process began; groups with stored offsets are older
	mu     sync.Mutex
	groups map[groupTopic]int64
}

// StartOffset is the answer to a consumer that asks where to begin: the stored offset,
// or 0 where nothing in the queue is older than the group, or ErrNoOffset, with which
// the consumer decides for itself. zero false never answers 0 for an offset that is not
// stored.
func (p *Puller) StartOffset(group, topic string, queue int32, zero bool) (int64, error) {
	if off, ok := p.o.Offsets.Query(group, topic, queue); ok {
		return off, nil
	}
	if !zero {
		return 0, fmt.Errorf("%w: group %s, topic %s, queue %d", ErrNoOffset, group, topic, queue)
	}
	since, known := p.since(group, topic, queue)
	if known && p.o.Store.MinOffset(topic, queue) <= 0 {
		if p.o.Store.MaxOffset(topic, queue) == 0 {
			return 0, nil
		}
		if first := p.o.Store.StoreTimeAt(topic, queue, 0); first >= since {
			return 0, nil
		}
	}
	return 0, fmt.Errorf("%w: group %s, topic %s, queue %d, the consumer decides", ErrNoOffset, group, topic, queue)
}

// since is when the group began to read the topic, as far as this process knows; known
// is false for a queue that the topic does not have.
func (p *Puller) since(group, topic string, queue int32) (ms int64, known bool) {
	t, ok := p.o.Topics.Get(topic)
	if !ok || queue < 0 || queue >= t.ReadQueues {
		return 0, false
	}
	k := groupTopic{group, topic}
	s := &p.starts
	s.mu.Lock()
	defer s.mu.Unlock()
	if ms, ok := s.groups[k]; ok {
		return ms, true
	}
	ms = p.o.NowMilli()
	if len(p.o.Offsets.Queues(group, topic)) > 0 {
		ms = s.opened
	}
	if _, exists := p.o.Groups.Get(group); exists { // so that names out of the air cost nothing
		s.groups[k] = ms
	}
	return ms, true
}

// mostQueues bounds the queue ids that offsets are stored for: each costs a place in the
// database for ever. The topic's own number does not, since it may have become smaller
// under consumers that still commit.
const mostQueues = 1 << 16

// Commit stores a consumer's offset because its own request says so. With durable it is
// as durable as the flush policy asks before done is called; otherwise it is with the
// next flush, as for a consumer that does not wait for an answer.
func (p *Puller) Commit(group, topic string, queue int32, off int64, durable bool, done func(error)) {
	if _, err := p.o.Groups.GetOrCreate(group); err != nil {
		done(fmt.Errorf("%w: %s: %w", ErrGroupNotFound, group, err))
		return
	}
	if _, ok := p.o.Topics.Get(topic); !ok {
		done(fmt.Errorf("%w: %s", ErrTopicNotFound, topic))
		return
	}
	if names.IsLite(topic) && p.o.Store.MaxOffset(topic, queue) == 0 { // any such name is a topic; offsets of invented ones would pile up
		done(fmt.Errorf("%w: %s has no queue %d", ErrTopicNotFound, topic, queue))
		return
	}
	if queue < 0 || queue >= mostQueues {
		done(fmt.Errorf("%w: queueId[%d] of topic %s, group %s", ErrQueueIllegal, queue, topic, group))
		return
	}
	if durable {
		p.o.Offsets.CommitThen(group, topic, queue, off, done)
		return
	}
	done(p.o.Offsets.Commit(group, topic, queue, off))
}
