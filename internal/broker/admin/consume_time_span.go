package admin

import (
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
)

// TimeSpan is which times a queue's messages are of, and how late a group is in it. All
// are milliseconds; -1 where there is no message to tell.
type TimeSpan struct {
	QueueID    int32
	Begin, End int64 // when the first and the last message were stored
	Consumed   int64 // when the last message that the group has done was stored
	Delay      int64 // how long the group's next message has been there
}

// ConsumeTimeSpans returns the time spans of a topic's queues.
func (a *Admin) ConsumeTimeSpans(group, name string) ([]TimeSpan, error) {
	t, ok := a.o.Topics.Get(name)
	if !ok {
		return nil, fmt.Errorf("%w: %s", topic.ErrNotFound, name)
	}
	now := time.Now().UnixMilli()
	out := make([]TimeSpan, 0, t.WriteQueues)
	for q := range t.WriteQueues {
		low, high := max(0, a.o.Store.MinOffset(name, q)), max(0, a.o.Store.MaxOffset(name, q))
		s := TimeSpan{QueueID: q, Begin: a.o.Store.StoreTimeAt(name, q, low), End: a.o.Store.StoreTimeAt(name, q, high-1)}
		s.Consumed = s.Begin
		off, ok := a.o.Offsets.Query(group, name, q)
		if ok && off > 0 {
			s.Consumed = a.o.Store.StoreTimeAt(name, q, off-1)
		}
		if next := a.o.Store.StoreTimeAt(name, q, max(off, low)); max(off, low) < high && next > 0 {
			s.Delay = max(0, now-next)
		}
		out = append(out, s)
	}
	return out, nil
}
