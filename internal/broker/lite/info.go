package lite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Counts are the sizes of what the registry holds.
type Counts struct {
	Subscriptions, Clients int
	TTLs                   map[string]int32    // minutes, by parent
	Groups                 map[string][]string // by the parent that they are bound to
}

// Counts counts.
func (r *Registry) Counts() Counts {
	r.mu.Lock()
	c := Counts{Subscriptions: r.mu.count, Clients: len(r.mu.clients)}
	r.mu.Unlock()
	c.TTLs, c.Groups = make(map[string]int32), make(map[string][]string)
	for _, t := range r.o.Topics.All() {
		if t.MessageType() == "LITE" {
			c.TTLs[t.Name] = ttlOf(t)
		}
	}
	for _, g := range r.o.Groups.All() {
		if parent := g.Attributes["lite.bind.topic"]; parent != "" {
			c.Groups[parent] = append(c.Groups[parent], g.Name)
		}
	}
	return c
}

func ttlOf(t *topic.Config) int32 {
	n, err := strconv.ParseInt(t.Attributes["lite.topic.expiration"], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// Parent is one topic that has lite topics.
type Parent struct {
	TTL    int32 // minutes
	Groups []string
	Lites  int
}

// Parent looks at a topic.
func (r *Registry) Parent(name string) (Parent, error) {
	t, ok := r.o.Topics.Get(name)
	switch {
	case !ok:
		return Parent{}, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	case t.MessageType() != "LITE":
		return Parent{}, fmt.Errorf("%w: %s has the message type %s, not LITE", ErrNotLite, name, t.MessageType())
	}
	p := Parent{TTL: ttlOf(t), Groups: r.groupsOf(name)}
	r.o.Store.EachLight(names.LitePrefix(name), func(string, int64) bool { p.Lites++; return true })
	return p, nil
}

// Subscriber is a client of a group; one of a group that takes all lite topics stands for
// all of its clients.
type Subscriber struct{ ClientID, Group string }

// Subscribers are those of a lite topic.
func (r *Registry) Subscribers(parent, lite string) (list []Subscriber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.mu.topics[names.Lite(parent, lite)]; t != nil {
		for _, c := range t.clients {
			list = append(list, Subscriber{c.id, c.group})
		}
	}
	for _, w := range r.mu.wild[parent] {
		list = append(list, Subscriber{everybody, w.group})
	}
	return list
}

// ClientOf is what a client has subscribed to, at most most of it, sorted, and when it last
// asked for messages; known is false for a client without subscriptions.
func (r *Registry) ClientOf(id, group, parent string, most int) (lites []string, count int, asked int64, known bool, err error) {
	if _, err := r.bound(group, parent); err != nil {
		return nil, 0, 0, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.clients[id]
	if c == nil {
		return nil, 0, 0, false, nil
	}
	for t := range c.topics {
		lites = append(lites, t.queue)
	}
	slices.Sort(lites)
	return lites[:min(max(most, 0), len(lites))], len(c.topics), c.asked, true, nil
}

// Lag is how far a group is behind in one lite topic.
type Lag struct {
	Lite     string
	End, At  int64 // offsets: of the queue, of the group
	Known    bool  // the group has an offset
	Since    int64 // store time of the first message that the group has not had; −1 for none
	Consumed int64 // store time of the last one that it has had; 0 for none
}

// Count is the number of messages.
func (l *Lag) Count() int64 { return l.End - l.At }

// LagOf looks at one lite topic.
func (r *Registry) LagOf(group, lite string) (parent string, l Lag, err error) {
	g, err := r.liteGroup(group)
	if err != nil {
		return "", l, err
	}
	parent = g.Attributes["lite.bind.topic"]
	return parent, r.lag(group, names.Lite(parent, lite)), nil
}

func (r *Registry) lag(group, queue string) Lag {
	_, lite, _ := names.OfLite(queue)
	l := Lag{Lite: lite, End: r.o.Store.MaxOffset(queue, 0), Since: -1}
	l.At, l.Known = r.o.Offsets.Query(group, queue, 0)
	if l.At < l.End {
		l.Since = r.o.Store.StoreTimeAt(queue, 0, max(l.At, r.o.Store.MinOffset(queue, 0)))
	}
	if l.At > 0 {
		l.Consumed = max(r.o.Store.StoreTimeAt(queue, 0, l.At-1), 0)
	}
	return l
}

func (r *Registry) liteGroup(name string) (*group.Config, error) {
	g, ok := r.o.Groups.Get(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrGroupNotFound, name)
	case g.Attributes["lite.bind.topic"] == "":
		return nil, fmt.Errorf("%w: group %s has no lite.bind.topic", ErrNotBound, name)
	}
	return g, nil
}

// Lags are the lite topics in which a group that has an offset there is behind: the most by
// number of messages, and by age, and all messages together.
func (r *Registry) Lags(group string, most int) (parent string, byCount, byAge []Lag, total int64, err error) {
	g, err := r.liteGroup(group)
	if err != nil {
		return "", nil, nil, 0, err
	}
	parent = g.Attributes["lite.bind.topic"]
	var all []Lag
	r.o.Store.EachLight(names.LitePrefix(parent), func(queue string, end int64) bool {
		if at, known := r.o.Offsets.Query(group, queue, 0); known && at < end {
			l := r.lag(group, queue)
			total += l.Count()
			all = append(all, l)
		}
		return true
	})
	most = min(max(most, 0), len(all))
	slices.SortFunc(all, func(a, b Lag) int { return cmp.Or(cmp.Compare(b.Count(), a.Count()), cmp.Compare(a.Lite, b.Lite)) })
	byCount = slices.Clone(all[:most])
	slices.SortFunc(all, func(a, b Lag) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Lite, b.Lite)) })
	return parent, byCount, all[:most:most], total, nil
}

// Trigger makes every queue that a group is behind in an event again, of one client or,
// without a client, of all.
func (r *Registry) Trigger(group, clientID string) error {
	g, err := r.liteGroup(group)
	if err != nil {
		return err
	}
	var queues []string
	r.mu.Lock()
	for id, c := range r.mu.clients {
		if c.group == group && (clientID == "" || clientID == id) {
			for t := range c.topics {
				queues = append(queues, t.queue)
			}
		}
	}
	r.mu.Unlock()
	if wildcard(g) {
		r.o.Store.EachLight(names.LitePrefix(g.Attributes["lite.bind.topic"]), func(queue string, _ int64) bool {
			queues = append(queues, queue)
			return true
		})
	}
	for _, queue := range queues {
		if r.behind(group, queue) {
			r.ready(group, queue)
		}
	}
	return nil
}
