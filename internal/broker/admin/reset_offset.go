package admin

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
)

// Reset says where a group is to go on in a topic.
type Reset struct {
	Group, Topic string
	QueueID      int32 // -1 = all
	Timestamp    int64 // ms; -1 = the end; used where Offset is not set
	Offset       int64
	HasOffset    bool
}

// ResetOffset sets a group's offsets and returns the new one of each queue. Connected
// consumers learn of it with their next pull or pop.
func (a *Admin) ResetOffset(r Reset) (map[int32]int64, error) {
	t, ok := a.o.Topics.Get(r.Topic)
	if !ok {
		return nil, fmt.Errorf("%w: %s", topic.ErrNotFound, r.Topic)
	}
	if _, ok := a.o.Groups.Get(r.Group); !ok {
		return nil, fmt.Errorf("%w: %s", group.ErrNotFound, r.Group)
	}
	if r.QueueID >= t.ReadQueues {
		return nil, fmt.Errorf("%w: queueId %d of %s, which has %d queues to read", ErrIllegal, r.QueueID, r.Topic, t.ReadQueues)
	}
	if err := a.o.State.Full(); err != nil { // before memory says otherwise than the answer
		return nil, fmt.Errorf("reset offsets of %s: %w", r.Group, err)
	}
	out := make(map[int32]int64)
	if r.QueueID >= 0 {
		off, err := a.target(&r, r.QueueID)
		if err != nil {
			return nil, err
		}
		out[r.QueueID] = off
	} else {
		for q := range t.ReadQueues {
			off, err := a.target(&r, q)
			if err != nil {
				return nil, err
			}
			out[q] = off
		}
	}
	for q, off := range out {
		a.o.Offsets.Reset(r.Group, r.Topic, q, off)
	}
	if err := a.o.Offsets.Flush(); err != nil {
		return nil, fmt.Errorf("reset offsets of %s: %w", r.Group, err)
	}
	a.wake(r.Topic)
	return out, nil
}

// wake has consumers that wait for messages of a topic look at their offsets again.
func (a *Admin) wake(topic string) {
	if a.o.Wake != nil {
		a.o.Wake(topic)
	}
}

// target is where one queue's offset goes.
func (a *Admin) target(r *Reset, q int32) (int64, error) {
	low, high := max(0, a.o.Store.MinOffset(r.Topic, q)), max(0, a.o.Store.MaxOffset(r.Topic, q))
	switch {
	case r.HasOffset && (r.Offset < low || r.Offset > high):
		return 0, fmt.Errorf("%w: offset %d of queue %d is not in the range %d..%d", ErrIllegal, r.Offset, q, low, high)
	case r.HasOffset:
		return r.Offset, nil
	case r.Timestamp < 0:
		return high, nil
	}
	return min(max(a.o.Store.OffsetByTime(r.Topic, q, r.Timestamp, false), low), high), nil
}
