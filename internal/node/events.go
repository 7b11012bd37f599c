package node

import (
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/timer"
	"github.com/bolidemq/bolide/internal/storage"
)

// brokerEvents tells the log what an operator wants to know. What may happen to every
// message is told once in a while for each group and topic.
func (n *Node) brokerEvents() broker.Events {
	var rare rarely
	return broker.Events{
		Storage: storage.Events{
			SegmentDeleted: func(first, end int64, forced bool) {
				n.log.Info("log file deleted", "from", first, "to", end, "for lack of room", forced)
			},
			DiskFull: func(full bool) {
				if full {
					n.log.Error("disk full: messages are refused until there is room")
				} else {
					n.log.Info("room on the disk again: messages are taken")
				}
			},
		},
		Publish: publish.Events{
			DeadLettered: func(group, topic, reason string) {
				if rare.now("dead letter", group, topic) {
					n.log.Warn("messages go to the dead-letter topic", "group", group, "topic", topic, "reason", reason)
				}
			},
		},
		Pop: pop.Events{
			Failed: func(group, topic string, err error) {
				if rare.now("retry", group, topic) {
					n.log.Error("a lapsed message could not be written again; it is tried until it can", "group", group, "topic", topic, "err", err)
				}
			},
			Skipped: func(group, topic string, queueID int32, from, to int64) {
				n.log.Warn("messages are gone that a group has not received", "group", group, "topic", topic, "queue", queueID, "from", from, "to", to)
			},
			Corrected: func(group, topic string, queueID int32, from, to int64) {
				n.log.Warn("a group's offset was outside its queue", "group", group, "topic", topic, "queue", queueID, "was", from, "is", to)
			},
		},
		Missed: func(m broker.Missed) {
			n.log.Warn("log files went before a group had received what was in them", "group", m.Group, "topic", m.Topic, "messages missed since the start", m.Messages)
		},
		Clients: clients.Events{
			Conflict: func(c clients.Conflict) {
				if rare.now("conflict", c.Group, c.Topic) {
					n.log.Warn("members of a consumer group subscribe differently; messages reach the wrong one of them or nobody", "group", c.Group, "topic", c.Topic,
						"client", c.One, "wants", c.OneWants, "other client", c.Other, "other wants", c.OtherWants)
				}
			},
		},
		Timer: timer.Events{
			Dropped: func(level int32, topic string) {
				if rare.now("delayed", "", topic) {
					n.log.Warn("delayed messages dropped: their topic is gone", "topic", topic, "level", level)
				}
			},
		},
	}
}

// rarely lets one of the same kind through a while.
type rarely struct {
	mu   sync.Mutex
	last map[[3]string]time.Time
}

const (
	rareEvery = 10 * time.Second
	rareMost  = 1000 // kinds that are remembered
)

func (r *rarely) now(kind, group, topic string) bool {
	key := [3]string{kind, group, topic}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.last[key]; ok && now.Sub(at) < rareEvery {
		return false
	}
	if r.last == nil || len(r.last) >= rareMost {
		r.last = map[[3]string]time.Time{}
	}
	r.last[key] = now
	return true
}
