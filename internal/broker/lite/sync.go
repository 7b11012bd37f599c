package lite

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
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
	m, err := r.register(&s, g)
	if err != nil {
		return err
	}
	r.follow(&s, m)
	return nil
}

// move is what a Sync has changed, and what follows from it: that is done without mu, which the
// dispatcher takes, because it asks the store and the offsets.
type move struct {
	c     *client
	begun []string // queues that c has subscribed to now
	all   bool     // of its parent, as the first of its crowd
	reset []string // queues in which the group is to begin anew
	tell  []func() // those who have lost something
}

// register changes who has subscribed to what.
func (r *Registry) register(s *Subscription, g *group.Config) (m *move, err error) {
	m = &move{}
	r.mu.Lock()
	defer r.mu.Unlock()
	m.c, err = r.clientLocked(s, g)
	switch {
	case err != nil:
	case s.Action == PartialRemove:
		gone := r.removeLocked(m.c, s.Lites)
		if on(g, "lite.sub.reset.offset.unsubscribe") {
			m.reset = gone
		}
	case wildcard(g) && s.Action == PartialAdd:
		err = fmt.Errorf("%w: group %s takes all lite topics (lite.sub.wildcard), so its clients subscribe to none by name", ErrIllegal, s.Group)
	case wildcard(g):
		m.all = r.joinLocked(m.c)
	default:
		err = r.addLocked(m, g, s)
	}
	return m, err
}

// follow moves the group's offsets as was asked for, and makes what the group has not had an
// event. Messages that come meanwhile are events already, and are taken when that is done.
func (r *Registry) follow(s *Subscription, m *move) {
	for _, f := range m.tell {
		f()
	}
	for _, queue := range m.reset {
		if r.o.Store.MaxOffset(queue, 0) > 0 {
			r.o.Offsets.Reset(m.c.group, queue, 0, 0)
		}
	}
	var behind []string
	for _, queue := range m.begun {
		if s.Action == PartialAdd {
			r.moveTo(m.c.group, queue, s.From)
		}
		if r.behind(m.c.group, queue) {
			behind = append(behind, queue)
		}
	}
	if m.all {
		r.o.Store.EachLight(names.LitePrefix(m.c.parent), func(queue string, _ int64) bool {
			if r.behind(m.c.group, queue) {
				behind = append(behind, queue)
			}
			return true
		})
	}
	if key, some := r.moved(m, behind); some {
		r.o.LongPoll.WakeNext(key)
	}
}

// moved ends a move, and says whom to wake when there are events for it.
func (r *Registry) moved(m *move, behind []string) (key longpoll.Key, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := m.c
	for _, queue := range behind {
		c.from().add(queue)
	}
	for _, queue := range m.begun {
		if c.moving[queue] == m {
			delete(c.moving, queue)
		}
	}
	if len(c.moving) == 0 {
		c.moving = nil
	}
	return c.key(), len(c.from().list) > 0
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

// addLocked subscribes m's client to more lite topics, or to just these.
func (r *Registry) addLocked(m *move, g *group.Config, s *Subscription) error {
	c := m.c
	fresh, gone := c.change(s)
	if err := r.allowLocked(c, g, len(fresh), len(gone)); err != nil {
		return err
	}
	r.removeLocked(c, gone)
	exclusive := g.Attributes["lite.sub.model"] == "Exclusive" && s.Action == PartialAdd
	for _, lite := range fresh {
		queue := names.Lite(c.parent, lite)
		t := r.mu.topics[queue]
		if t == nil {
			t = &liteTopic{queue: queue}
			r.mu.topics[queue] = t
		}
		if exclusive {
			lost := r.excludeLocked(t, c, lite)
			if m.tell = append(m.tell, lost...); len(lost) > 0 && on(g, "lite.sub.reset.offset.exclusive") {
				m.reset = append(m.reset, queue)
			}
		}
		t.clients = append(t.clients, c)
		c.topics[t] = struct{}{}
		r.mu.count++
		m.begun = append(m.begun, queue)
		if s.Action == PartialAdd {
			if c.moving == nil {
				c.moving = make(map[string]*move)
			}
			c.moving[queue] = m
		}
	}
	return nil
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

// removeLocked ends subscriptions of c, and returns the queues of those that it had.
func (r *Registry) removeLocked(c *client, lites []string) (gone []string) {
	for _, lite := range lites {
		t := r.mu.topics[names.Lite(c.parent, lite)]
		if t == nil {
			continue
		}
		if _, subscribed := c.topics[t]; subscribed {
			r.partLocked(t, c)
			gone = append(gone, t.queue)
		}
	}
	return gone
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

// excludeLocked takes a lite topic from the other clients of c's group; each of lost tells one
// of them.
func (r *Registry) excludeLocked(t *liteTopic, c *client, lite string) (lost []func()) {
	for _, other := range slices.Clone(t.clients) {
		if other == c || other.group != c.group {
			continue
		}
		r.partLocked(t, other)
		tell := other.unsubscribed
		lost = append(lost, func() {
			if tell != nil {
				tell(lite)
			}
		})
	}
	r.mu.topics[t.queue] = t // it may have been left by all
	return lost
}

// joinLocked puts c into the crowd of its group, and reports whether c is the first there: its
// events are to be found.
func (r *Registry) joinLocked(c *client) (first bool) {
	if c.crowd != nil {
		return false
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
	return len(w.clients) == 1
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

// moveTo sets the group's offset in a queue as a client asks, to one that the queue has. In a
// lite topic that is not there every group begins with the first message, and nothing is kept:
// its name may be one that nobody ever sends to.
func (r *Registry) moveTo(group, queue string, from From) {
	end := r.o.Store.MaxOffset(queue, 0)
	if end == 0 {
		return
	}
	at, known := r.o.Offsets.Query(group, queue, 0)
	to := at
	switch from.Kind {
	case FromMin:
		to = 0
	case FromMax:
		to = end
	case FromOffset:
		to = min(max(from.Value, 0), end)
	case FromTail:
		if !known {
			return
		}
		to = max(at-from.Value, 0)
	case FromTime:
		to = r.firstSince(queue, from.Value)
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
