package lite

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Action is what a Subscription does, with the protocol's numbers.
type Action int32

// The actions.
const (
	PartialAdd Action = iota
	PartialRemove
	CompleteAdd // these are all
	CompleteRemove
)

// String is the action's name.
func (a Action) String() string {
	return [...]string{"PARTIAL_ADD", "PARTIAL_REMOVE", "COMPLETE_ADD", "COMPLETE_REMOVE"}[a]
}

// Subscription is what a client says about the lite topics that it wants.
type Subscription struct {
	Action                 Action
	ClientID, Group, Topic string
	Lites                  []string
	From                   From // of PartialAdd
	// Unsubscribed tells the client that a lite topic is not its own any more. It must not
	// wait.
	Unsubscribed func(lite string)
}

// From says where a group is to go on in a lite topic that a client subscribes to.
type From struct {
	Kind  FromKind
	Value int64
}

// FromKind is the kind of a From.
type FromKind byte

// The kinds.
const (
	FromLast   FromKind = iota // where it is
	FromMin                    // at the first message
	FromMax                    // behind the last one
	FromOffset                 // at offset Value
	FromTail                   // Value messages before where it is
	FromTime                   // at the first message stored at or after Value, in ms
)

// Sync does what a client says about its subscriptions.
func (r *Registry) Sync(s Subscription) error {
	if s.Action == CompleteRemove {
		r.Leave(s.ClientID)
		return nil
	}
	g, err := r.bound(s.Group, s.Topic)
	if err != nil {
		return err
	}
	if s.Action != PartialRemove {
		if !g.ConsumeEnable {
			return fmt.Errorf("%w: %s", ErrGroupDisabled, s.Group)
		}
		for _, lite := range s.Lites {
			if err := names.CheckLite(lite); err != nil {
				return fmt.Errorf("%w: %w", ErrIllegal, err)
			}
		}
	}
	since := r.resolve(&s)
	var out []func()
	r.mu.Lock()
	c, err := r.clientLocked(&s, g)
	if err == nil {
		switch {
		case s.Action == PartialRemove:
			r.removeLocked(c, s.Lites, on(g, "lite.sub.reset.offset.unsubscribe"))
		case wildcard(g) && s.Action == PartialAdd:
			err = fmt.Errorf("%w: group %s takes all lite topics (lite.sub.wildcard), so its clients subscribe to none by name", ErrIllegal, s.Group)
		case wildcard(g):
			r.joinLocked(c)
		default:
			out, err = r.addLocked(c, g, &s, since)
		}
	}
	r.mu.Unlock()
	for _, f := range out {
		f()
	}
	return err
}

func wildcard(g *group.Config) bool { _, ok := g.Attributes["lite.sub.wildcard"]; return ok }

func on(g *group.Config, attribute string) bool { return g.Attributes[attribute] == "true" }

// bound returns the group if it may subscribe to lite topics of the parent.
func (r *Registry) bound(name, parent string) (*group.Config, error) {
	t, ok := r.o.Topics.Get(parent)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrTopicNotFound, parent)
	case t.MessageType() != "LITE":
		return nil, fmt.Errorf("%w: %s has the message type %s, not LITE", ErrNotLite, parent, t.MessageType())
	}
	g, ok := r.o.Groups.Get(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrGroupNotFound, name)
	case g.Attributes["lite.bind.topic"] != parent:
		return nil, fmt.Errorf("%w: lite group %s has lite.bind.topic %q, not %q", ErrNotBound, name, g.Attributes["lite.bind.topic"], parent)
	}
	return g, nil
}

// clientLocked finds or makes the client.
func (r *Registry) clientLocked(s *Subscription, g *group.Config) (*client, error) {
	c := r.mu.clients[s.ClientID]
	if c != nil && c.group != s.Group {
		return nil, fmt.Errorf("%w: client %s subscribes for group %s already, not for %s", ErrIllegal, s.ClientID, c.group, s.Group)
	}
	if c == nil {
		c = &client{id: s.ClientID, group: g.Name, parent: g.Attributes["lite.bind.topic"], topics: make(map[*liteTopic]struct{}),
			wait: waitKey(g.Name, s.ClientID)}
		r.mu.clients[c.id] = c
	}
	c.said = time.Now()
	if s.Unsubscribed != nil {
		c.unsubscribed = s.Unsubscribed
	}
	return c, nil
}

// defaultQuota is the number of lite topics that one client of a group may subscribe to.
const defaultQuota = 2000

// Quota is how many lite topics a client of the group may subscribe to; negative: any number.
func Quota(g *group.Config) int {
	if n, err := strconv.ParseInt(g.Attributes["lite.sub.client.quota"], 10, 32); err == nil {
		return int(n)
	}
	return defaultQuota
}

// addLocked subscribes c to more lite topics, or to just these. out is to be called without
// the lock.
func (r *Registry) addLocked(c *client, g *group.Config, s *Subscription, since map[string]int64) (out []func(), err error) {
	fresh, gone := c.change(s)
	if err := r.allowLocked(c, g, len(fresh), len(gone)); err != nil {
		return nil, err
	}
	r.removeLocked(c, gone, false)
	exclusive := g.Attributes["lite.sub.model"] == "Exclusive"
	for _, lite := range fresh {
		queue := names.Lite(c.parent, lite)
		t := r.mu.topics[queue]
		if t == nil {
			t = &liteTopic{queue: queue}
			r.mu.topics[queue] = t
		}
		if exclusive && s.Action == PartialAdd {
			out = append(out, r.excludeLocked(t, c, lite, on(g, "lite.sub.reset.offset.exclusive"))...)
		}
		if s.Action == PartialAdd {
			r.moveTo(c.group, queue, s.From, since)
		}
		t.clients = append(t.clients, c)
		c.topics[t] = struct{}{}
		r.mu.count++
		if r.behind(c.group, queue) {
			c.events.add(t.queue)
		}
	}
	if len(c.events.list) > 0 {
		key := c.key()
		out = append(out, func() { r.o.LongPoll.WakeNext(key) })
	}
	return out, nil
}

// change is what s adds to c's subscriptions and what it takes away.
func (c *client) change(s *Subscription) (fresh, gone []string) {
	have := make(map[string]bool, len(c.topics))
	for t := range c.topics {
		_, lite, _ := names.OfLite(t.queue)
		have[lite] = true
	}
	want := make(map[string]bool, len(s.Lites))
	for _, lite := range s.Lites {
		if !have[lite] && !want[lite] {
			fresh = append(fresh, lite)
		}
		want[lite] = true
	}
	if s.Action == CompleteAdd {
		for lite := range have {
			if !want[lite] {
				gone = append(gone, lite)
			}
		}
	}
	return fresh, gone
}

// allowLocked refuses more subscriptions than there may be. Who has too many already may
// still have others, and fewer.
func (r *Registry) allowLocked(c *client, g *group.Config, more, fewer int) error {
	if more <= fewer {
		return nil
	}
	if quota, n := Quota(g), len(c.topics)-fewer+more; quota >= 0 && n > quota {
		return fmt.Errorf("%w: client %s would have %d, the limit of group %s is %d (lite.sub.client.quota)", ErrQuota, c.id, n, g.Name, quota)
	}
	if most, n := r.o.Broker.Get().MaxLiteSubscriptionCount, int64(r.mu.count-fewer+more); n > most {
		return fmt.Errorf("%w: there would be %d, the broker's limit is %d (maxLiteSubscriptionCount)", ErrQuota, n, most)
	}
	return nil
}

// removeLocked ends subscriptions of c.
func (r *Registry) removeLocked(c *client, lites []string, reset bool) {
	for _, lite := range lites {
		t := r.mu.topics[names.Lite(c.parent, lite)]
		if t == nil {
			continue
		}
		if _, subscribed := c.topics[t]; subscribed {
			r.partLocked(t, c)
			if reset {
				r.o.Offsets.Reset(c.group, t.queue, 0, 0)
			}
		}
	}
}

// partLocked ends one subscription. Its event stays where it is: who takes it looks whether
// it still may.
func (r *Registry) partLocked(t *liteTopic, c *client) {
	delete(c.topics, t)
	t.clients = slices.DeleteFunc(t.clients, func(o *client) bool { return o == c })
	if len(t.clients) == 0 {
		delete(r.mu.topics, t.queue)
	}
	r.mu.count--
}

// excludeLocked takes a lite topic from the other clients of c's group.
func (r *Registry) excludeLocked(t *liteTopic, c *client, lite string, reset bool) (out []func()) {
	for _, other := range slices.Clone(t.clients) {
		if other == c || other.group != c.group {
			continue
		}
		r.partLocked(t, other)
		if tell := other.unsubscribed; tell != nil {
			out = append(out, func() { tell(lite) })
		}
		if reset {
			r.o.Offsets.Reset(c.group, t.queue, 0, 0)
		}
	}
	r.mu.topics[t.queue] = t // it may have been left by all
	return out
}

// joinLocked puts c into the crowd of its group, whose events are all queues that the group
// is behind in.
func (r *Registry) joinLocked(c *client) {
	if c.crowd != nil {
		return
	}
	crowds := r.mu.wild[c.parent]
	i := slices.IndexFunc(crowds, func(w *crowd) bool { return w.group == c.group })
	if i < 0 {
		i = len(crowds)
		crowds = append(crowds, &crowd{group: c.group, wait: waitKey(c.group, everybody)})
		r.mu.wild[c.parent] = crowds
	}
	w := crowds[i]
	w.clients = append(w.clients, c)
	c.crowd = w
	r.mu.count++
	if len(w.clients) > 1 {
		return
	}
	r.o.Store.EachLight(names.LitePrefix(c.parent), func(queue string, _ int64) bool {
		if r.behind(c.group, queue) {
			w.events.add(queue)
		}
		return true
	})
}

// behind reports whether the group has not had all of the queue, as far as that is known
// without looking at what is in flight.
func (r *Registry) behind(group, queue string) bool {
	end := r.o.Store.MaxOffset(queue, 0)
	if end == 0 {
		return false
	}
	at, known := r.o.Offsets.Query(group, queue, 0)
	return !known || at < end
}

// resolve finds the offsets that a subscription names by time. That reads the log, so it is
// done without mu, which the dispatcher takes.
func (r *Registry) resolve(s *Subscription) (since map[string]int64) {
	if s.Action != PartialAdd || s.From.Kind != FromTime {
		return nil
	}
	since = make(map[string]int64, len(s.Lites))
	for _, lite := range s.Lites {
		queue := names.Lite(s.Topic, lite)
		since[queue] = r.firstSince(queue, s.From.Value)
	}
	return since
}

// moveTo sets the group's offset in a queue as a client asks; since is what resolve found.
func (r *Registry) moveTo(group, queue string, from From, since map[string]int64) {
	at, known := r.o.Offsets.Query(group, queue, 0)
	to := at
	switch from.Kind {
	case FromMin:
		to = 0
	case FromMax:
		to = r.o.Store.MaxOffset(queue, 0)
	case FromOffset:
		to = max(from.Value, 0)
	case FromTail:
		if !known {
			return
		}
		to = max(at-from.Value, 0)
	case FromTime:
		to = since[queue]
	default:
		return
	}
	if !known || to != at {
		r.o.Offsets.Reset(group, queue, 0, to)
	}
}

// firstSince is the first offset stored at or after ms.
func (r *Registry) firstSince(queue string, ms int64) int64 {
	low, high := r.o.Store.MinOffset(queue, 0), r.o.Store.MaxOffset(queue, 0)
	for low < high {
		mid := low + (high-low)/2
		if t := r.o.Store.StoreTimeAt(queue, 0, mid); t >= 0 && t < ms {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Leave ends all subscriptions of a client.
func (r *Registry) Leave(clientID string) {
	r.mu.Lock()
	c := r.mu.clients[clientID]
	if c == nil {
		r.mu.Unlock()
		return
	}
	delete(r.mu.clients, clientID)
	for t := range c.topics {
		r.partLocked(t, c)
	}
	if w := c.crowd; w != nil {
		r.mu.count--
		if w.clients = slices.DeleteFunc(w.clients, func(o *client) bool { return o == c }); len(w.clients) == 0 {
			r.mu.wild[c.parent] = slices.DeleteFunc(r.mu.wild[c.parent], func(o *crowd) bool { return o == w })
			if len(r.mu.wild[c.parent]) == 0 {
				delete(r.mu.wild, c.parent)
			}
		}
	}
	left := c.events.list
	r.mu.Unlock()
	// One that was woken for these may have been c.
	for _, queue := range left {
		r.ready(c.group, queue)
	}
}
