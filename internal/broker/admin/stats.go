package admin

import (
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/broker/topic"
)

// QueueExtent is what one queue holds.
type QueueExtent struct {
	QueueID    int32
	Min, Max   int64
	LastStored int64 // when its newest message was stored, ms; 0 = it has none
}

// TopicStats returns the extent of each queue of a topic.
func (a *Admin) TopicStats(name string) ([]QueueExtent, error) {
	t, ok := a.o.Topics.Get(name)
	if !ok {
		return nil, fmt.Errorf("%w: %s", topic.ErrNotFound, name)
	}
	out := make([]QueueExtent, 0, t.Queues())
	for q := range t.Queues() {
		e := QueueExtent{QueueID: q, Min: max(0, a.o.Store.MinOffset(name, q)), Max: max(0, a.o.Store.MaxOffset(name, q))}
		if e.Max > e.Min {
			e.LastStored = max(0, a.o.Store.StoreTimeAt(name, q, e.Max-1))
		}
		out = append(out, e)
	}
	return out, nil
}

// Progress is how far a group has come in one queue.
type Progress struct {
	Topic     string
	QueueID   int32
	End       int64 // of the queue
	Consumed  int64 // the next message that is not done
	Pulled    int64 // where it reads now
	LastStore int64 // when the last message before Consumed was stored, ms; 0 = unknown
}

// ConsumeStats returns how far a group has come in the given topics, or in all in which
// it has come anywhere.
func (a *Admin) ConsumeStats(group string, topics []string) []Progress {
	if len(topics) == 0 {
		topics = a.topicsOf(group)
	}
	online, subscribes := a.subscriptions(group)
	var out []Progress
	for _, name := range topics {
		t, ok := a.o.Topics.Get(name)
		// An online group that does not subscribe to the topic has left it.
		if !ok || online && !subscribes[name] {
			continue
		}
		for q := range t.ReadQueues {
			out = append(out, a.progress(group, name, q))
		}
	}
	return out
}

// GroupRate is how many messages a second a group has got over the last minute, of the
// topics of its progress.
func (a *Admin) GroupRate(group string, progress []Progress) (rate float64) {
	last := ""
	for _, p := range progress {
		if p.Topic != last {
			rate, last = rate+a.Counters.Rate(GroupGetNums, p.Topic, group), p.Topic
		}
	}
	return rate
}

func (a *Admin) progress(group, name string, q int32) Progress {
	p := Progress{Topic: name, QueueID: q, End: max(0, a.o.Store.MaxOffset(name, q))}
	if off, ok := a.o.Offsets.Query(group, name, q); ok {
		p.Consumed = off
	}
	p.Pulled = p.Consumed
	if off, ok := a.o.Offsets.QueryPull(group, name, q); ok {
		p.Pulled = max(off, p.Consumed)
	}
	if p.Consumed > 0 {
		p.LastStore = max(0, a.o.Store.StoreTimeAt(name, q, p.Consumed-1))
	}
	return p
}

// topicsOf are the topics in which a group has come anywhere or which it subscribes to.
func (a *Admin) topicsOf(group string) []string {
	list := a.o.Offsets.TopicsOf(group)
	if a.o.Pop != nil {
		list = append(list, a.o.Pop.TopicsOf(group)...) // received, nothing done yet
	}
	if g, ok := a.o.Clients.Group(group); ok {
		for _, s := range g.Subscriptions {
			list = append(list, s.Topic)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (a *Admin) subscriptions(group string) (online bool, topics map[string]bool) {
	g, ok := a.o.Clients.Group(group)
	if !ok {
		return false, nil
	}
	topics = make(map[string]bool, len(g.Subscriptions))
	for _, s := range g.Subscriptions {
		topics[s.Topic] = true
	}
	return len(topics) > 0, topics
}

// GroupsOf lists the groups that consume a topic: connected ones and those with offsets.
func (a *Admin) GroupsOf(topic string) []string {
	list := append(a.o.Clients.GroupsOf(topic), a.o.Offsets.GroupsOf(topic)...)
	slices.Sort(list)
	return slices.Compact(list)
}

// TopicsOf lists the topics that a group has offsets in.
func (a *Admin) TopicsOf(group string) []string { return a.o.Offsets.TopicsOf(group) }
