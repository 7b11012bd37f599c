package admin

import (
	"fmt"
	"math"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
)

// Clone says whose offsets another group is to go on from.
type Clone struct {
	From, To string
	Topic    string // "" = all in which From has come anywhere
	Offline  bool   // also topics that From, which is connected, does not subscribe to
}

// CloneOffsets gives one group the offsets of another: as a reset does, so that consumers
// that are connected take them up and do not write over them.
func (a *Admin) CloneOffsets(c Clone) error {
	if _, ok := a.o.Groups.Get(c.To); !ok {
		return fmt.Errorf("%w: %s", group.ErrNotFound, c.To)
	}
	topics := []string{c.Topic}
	if c.Topic == "" {
		topics = a.o.Offsets.TopicsOf(c.From)
	} else if _, ok := a.o.Topics.Get(c.Topic); !ok {
		return fmt.Errorf("%w: %s", topic.ErrNotFound, c.Topic)
	}
	online, subscribes := a.subscriptions(c.From)
	for _, name := range topics {
		if _, ok := a.o.Topics.Get(name); !ok || !c.Offline && online && !subscribes[name] {
			continue
		}
		for q, off := range a.o.Offsets.Queues(c.From, name) {
			a.o.Offsets.Reset(c.To, name, q, off)
		}
		a.wake(name)
	}
	if err := a.o.Offsets.Flush(); err != nil {
		return fmt.Errorf("clone offsets of %s: %w", c.From, err)
	}
	return nil
}

// NotYet stands in CorrectionOffsets for a queue in which the compared group is behind all
// others.
const NotYet = math.MaxInt64

// CorrectionOffsets returns, for each queue of a topic, the lowest offset of all groups
// but those of the list; NotYet where the compared group is lower still.
func (a *Admin) CorrectionOffsets(topic, compared, left string) map[int32]int64 {
	out := make(map[int32]int64)
	without := make(map[string]bool)
	for g := range strings.SplitSeq(left, ",") {
		without[strings.TrimSpace(g)] = true
	}
	for _, g := range a.o.Offsets.GroupsOf(topic) {
		if without[g] {
			continue
		}
		for q, off := range a.o.Offsets.Queues(g, topic) {
			if low, ok := out[q]; !ok || off < low {
				out[q] = off
			}
		}
	}
	for q, off := range a.o.Offsets.Queues(compared, topic) {
		if low, ok := out[q]; ok && low > off {
			out[q] = NotYet
		}
	}
	return out
}
