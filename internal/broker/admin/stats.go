package admin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/names"
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
	InFlight  int64 // messages that it has received and is not done with
	Ready     int64 // messages that it could receive
	Blocked   int64 // messages that wait for one of their message group to be done
	Oldest    int64 // the lowest message of all these
	Next      int64 // the lowest one that it could receive
	Pops      bool  // it pops them, or is connected to do so
	LastStore int64 // when the last message before Consumed was stored, ms; 0 = unknown
}

// ConsumeStats returns how far a group has come: in the listed topics, subscribed to or
// not; or in one topic; or in all in which it has come anywhere. An online group that does
// not subscribe to a topic that is not listed has left it.
func (a *Admin) ConsumeStats(group, topic string, listed []string) (out []Progress) {
	popped := a.popped(func(g string) bool { return g == group })
	if len(listed) > 0 {
		for _, name := range listed {
			out = a.appendProgress(out, group, name, popped)
		}
		return out
	}
	topics := []string{topic}
	if topic == "" {
		topics = a.topicsOf(group, popped)
	}
	online, subscribes := a.subscriptions(group)
	for _, name := range topics {
		if !online || subscribes[name] {
			out = a.appendProgress(out, group, name, popped)
		}
	}
	return out
}

// EachProgress calls each with every group that has come anywhere or is connected, and how
// far it has come; in what it pops, retries included. It passes through each table once,
// whatever the number of groups.
func (a *Admin) EachProgress(each func(group string, list []Progress)) {
	popped := a.popped(nil)
	topics := a.consumed(popped)
	for _, name := range a.o.Clients.ConsumerGroups() {
		if _, ok := topics[name]; !ok {
			topics[name] = nil
		}
	}
	pops := make(map[[2]string]bool, len(popped)) // by group and topic
	for k := range popped {
		pops[[2]string{k.group, k.topic}] = true
	}
	for group, list := range topics {
		each(group, a.progressOf(group, list, popped, pops))
	}
}

// progressOf is that of one group, which has come somewhere in the given topics.
func (a *Admin) progressOf(group string, topics []string, popped map[windowKey]pop.Figures, pops map[[2]string]bool) (out []Progress) {
	online, subscribes := a.subscriptions(group)
	kind, _, _ := a.o.Clients.Model(group)
	if online {
		topics = slices.Collect(maps.Keys(subscribes))
	}
	seen := make(map[string]bool)
	add := func(name string, pops bool) {
		if seen[name] {
			return
		}
		seen[name] = true
		from := len(out)
		out = a.appendProgress(out, group, name, popped)
		for i := range out[from:] {
			out[from+i].Pops = pops
		}
	}
	for _, name := range topics {
		if origin, ok := names.OriginTopic(name, group); ok {
			name = origin
		}
		pops := pops[[2]string{group, name}] || kind == clients.ConsumePop && !names.IsRetry(name)
		add(name, pops)
		if pops {
			add(names.PopRetryV1(name, group), true)
			add(names.PopRetryV2(name, group), true)
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

type windowKey struct {
	group, topic string
	queue        int32
}

// popped is what POP knows of the groups that match, in one pass; nil: of all.
func (a *Admin) popped(match func(group string) bool) map[windowKey]pop.Figures {
	if a.o.Pop == nil {
		return nil
	}
	figures := a.o.Pop.Figures(match)
	out := make(map[windowKey]pop.Figures, len(figures))
	for _, f := range figures {
		out[windowKey{f.Group, f.Topic, f.QueueID}] = f
	}
	return out
}

// consumed are the topics in which each group has come anywhere, in one pass, sorted; by
// POP it may have received, and done nothing yet.
func (a *Admin) consumed(popped map[windowKey]pop.Figures) map[string][]string {
	of := make(map[string][]string)
	a.o.Offsets.Each(func(group, topic string, _ map[int32]int64) { of[group] = append(of[group], topic) })
	for k := range popped {
		of[k.group] = append(of[k.group], k.topic)
	}
	for group, names := range of {
		slices.Sort(names)
		of[group] = slices.Compact(names)
	}
	return of
}

// topicsOf are the topics in which a group has come anywhere or which it subscribes to.
func (a *Admin) topicsOf(group string, popped map[windowKey]pop.Figures) []string {
	list := a.o.Offsets.TopicsOf(group)
	for k := range popped {
		list = append(list, k.topic)
	}
	if g, ok := a.o.Clients.Group(group); ok {
		for _, s := range g.Subscriptions {
			list = append(list, s.Topic)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// appendProgress appends that of the queues that can be read, none if there is no such topic.
func (a *Admin) appendProgress(out []Progress, group, name string, popped map[windowKey]pop.Figures) []Progress {
	if t, ok := a.o.Topics.Get(name); ok {
		for q := range t.ReadQueues {
			out = append(out, a.progress(windowKey{group, name, q}, popped))
		}
	}
	return out
}

func (a *Admin) progress(k windowKey, popped map[windowKey]pop.Figures) Progress {
	p := Progress{Topic: k.topic, QueueID: k.queue, End: max(0, a.o.Store.MaxOffset(k.topic, k.queue))}
	if off, ok := a.o.Offsets.Query(k.group, k.topic, k.queue); ok {
		p.Consumed = off
	}
	// A group that went over from POP to pull may have messages in flight of both.
	f := popped[k]
	next := max(p.Consumed, f.Next)
	pulled, _ := a.o.Offsets.QueryPull(k.group, k.topic, k.queue)
	pulled = max(pulled, next)
	p.Blocked, p.InFlight = int64(f.Blocked), int64(f.InFlight)+pulled-next
	p.Ready = max(0, p.End-pulled) + int64(f.Aside) - p.Blocked
	p.Oldest, p.Next = next, pulled
	if f.InFlight+f.Aside > 0 {
		p.Oldest = f.Lowest
	}
	if f.FirstFree < f.Next {
		p.Next = f.FirstFree
	}
	if p.Consumed > 0 {
		p.LastStore = max(0, a.o.Store.StoreTimeAt(k.topic, k.queue, p.Consumed-1))
	}
	return p
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
