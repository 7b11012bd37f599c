package clients

import (
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
)

// Heartbeat takes note of a client. Groups that are unknown and may be created are
// created, and so are their retry topics; done is called when the name servers know
// those, at once if there are none. Groups that may not be created are left out silently,
// as clients expect.
func (r *Registry) Heartbeat(h Heartbeat, done func(Result)) {
	var fresh []string
	var after aftermath
	var result Result
	now := time.Now()
	for i := range h.Consumers {
		c := &h.Consumers[i]
		if c.Type == ConsumeActively && r.o.Config.Get().RejectPullConsumerEnable {
			continue
		}
		g, err := r.o.Groups.GetOrCreate(c.Group)
		if err != nil {
			continue
		}
		if name, created := r.makeRetryTopic(c, g); created {
			fresh = append(fresh, name)
		}
		if r.register(&h, c, g, now, &after) {
			result.SubscriptionsNeeded = true
		}
	}
	if len(h.Producers) > 0 {
		r.mu.Lock()
		for _, name := range h.Producers {
			r.registerProducer(name, h.Client, now, &after)
		}
		r.mu.Unlock()
	}
	r.finish(&after)
	if len(fresh) == 0 {
		done(result)
		return
	}
	r.o.Announce(fresh, func() { done(result) })
}

// makeRetryTopic creates the group's retry topic. It is an order topic where the group
// reads one.
func (r *Registry) makeRetryTopic(c *Consumer, g *group.Config) (name string, created bool) {
	if g.RetryQueues <= 0 {
		return "", false
	}
	order := false
	for i := range c.Subscriptions {
		if t, ok := r.o.Topics.Get(c.Subscriptions[i].Topic); ok && t.Order {
			order = true
			break
		}
	}
	var sysFlag int32
	if c.Unit {
		sysFlag = 2
	}
	_, created, err := r.o.Topics.CreateInternal(retryTopic(c.Group), g.RetryQueues, 6, order, sysFlag)
	if err != nil {
		r.o.Log.Error("a retry topic could not be created", "group", c.Group, "err", err)
		return "", false
	}
	return retryTopic(c.Group), created
}

// register adds or refreshes one member of a consumer group and tells whether its
// subscriptions are needed.
func (r *Registry) register(h *Heartbeat, c *Consumer, cfg *group.Config, now time.Time, after *aftermath) bool {
	ch := h.Client.Channel
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, closed := r.mu.closed[ch]; closed {
		return false
	}
	g := r.mu.consumers[c.Group]
	if g == nil {
		g = &consumerGroup{members: make(map[Channel]*member), subscriptions: make(map[string]*Subscription)}
		r.mu.consumers[c.Group] = g
	}
	g.kind, g.model, g.from = c.Type, c.Model, c.From
	g.silent = !cfg.NotifyConsumersChanged
	m := g.members[ch]
	if m == nil {
		m = &member{}
		g.members[ch] = m
		r.join(ch, func(j *memberships) map[string]struct{} { return j.consumers }, c.Group)
		r.mu.present[h.Client.ID]++
		after.changed(c.Group)
	} else if m.client.ID != h.Client.ID {
		r.absent(m.client.ID, after)
		r.mu.present[h.Client.ID]++
		after.changed(c.Group)
	}
	m.client, m.seen = h.Client, now
	if h.WithoutSubscriptions {
		return !m.full || m.fingerprint != h.Fingerprint
	}
	m.full, m.fingerprint = true, h.Fingerprint
	changed, differs := subscribe(g, m, c.Subscriptions)
	if changed {
		after.changed(c.Group)
	}
	if differs {
		if conflict, ok := g.newConflict(c.Group, m); ok {
			after.conflicts = append(after.conflicts, conflict)
		}
	}
	return h.Fingerprint == 0
}

// subscribe makes subs the member's and, as the newest, the group's subscriptions, and
// tells whether the group got or lost a topic, and whether the member wants something else
// than before.
func subscribe(g *consumerGroup, m *member, subs []Subscription) (changed, differs bool) {
	own := make(map[string]*Subscription, len(subs))
	for i := range subs {
		s := &subs[i]
		old := m.subscriptions[s.Topic]
		if old != nil && s.Version <= old.Version && s.Equal(old) {
			s = old // keep one value for what has not changed
		}
		differs = differs || old == nil || !s.Equal(old)
		own[s.Topic] = s
		current, ok := g.subscriptions[s.Topic]
		if !ok {
			changed = true
		}
		if !ok || s.Version > current.Version {
			g.subscriptions[s.Topic] = s
		}
	}
	differs = differs || len(own) != len(m.subscriptions)
	m.subscriptions = own
	for topic := range g.subscriptions {
		if _, ok := own[topic]; !ok {
			delete(g.subscriptions, topic)
			changed = true
		}
	}
	return changed, differs
}

// registerProducer adds or refreshes one member of a producer group; mu is held.
func (r *Registry) registerProducer(name string, c Client, now time.Time, after *aftermath) {
	if _, closed := r.mu.closed[c.Channel]; closed {
		return
	}
	members := r.mu.producers[name]
	if members == nil {
		members = make(map[Channel]*member)
		r.mu.producers[name] = members
	}
	m := members[c.Channel]
	if m == nil {
		m = &member{}
		members[c.Channel] = m
		r.join(c.Channel, func(j *memberships) map[string]struct{} { return j.producers }, name)
		r.mu.present[c.ID]++
		after.joined = append(after.joined, name)
	} else if m.client.ID != c.ID {
		r.absent(m.client.ID, after)
		r.unproducing(m.client.ID, c.Channel)
		r.mu.present[c.ID]++
	}
	r.mu.producing[c.ID] = c
	m.client, m.seen = c, now
}

// Passing remembers a subscription that came with a request of a group that may have no
// member here: a proxy's clients are connected elsewhere.
func (r *Registry) Passing(group string, s Subscription) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	topics := r.mu.passing[group]
	if topics == nil {
		topics = make(map[string]passing)
		r.mu.passing[group] = topics
		r.poke()
	}
	p := topics[s.Topic]
	if p.sub == nil || !p.sub.Equal(&s) {
		p.sub = &s
	}
	p.seen = now
	topics[s.Topic] = p
}

// seenFor is how long a producer that has sent needs not be noted again.
const seenFor = 20 * time.Second

// Produces notes that a client is a producer of a group because it has sent on the group's
// behalf: its heartbeat may come later.
func (r *Registry) Produces(group string, c Client) {
	if group == "" {
		return
	}
	now := time.Now()
	r.mu.RLock()
	m := r.mu.producers[group][c.Channel]
	known := m != nil && now.Sub(m.seen) < seenFor
	r.mu.RUnlock()
	if known {
		return
	}
	var after aftermath
	r.mu.Lock()
	r.registerProducer(group, c, now, &after)
	r.mu.Unlock()
	r.finish(&after)
}
