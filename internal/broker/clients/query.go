package clients

import (
	"slices"
	"strings"
	"time"
)

// ConsumerIDs returns the ids of all members of a consumer group, sorted, each once.
func (r *Registry) ConsumerIDs(group string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	g := r.mu.consumers[group]
	if g == nil {
		return nil
	}
	ids := make([]string, 0, len(g.members))
	for _, m := range g.members {
		ids = append(ids, m.client.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Producer returns the client that has said last that it produces under this id.
func (r *Registry) Producer(clientID string) (Client, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.mu.producing[clientID]
	return c, ok
}

// Group returns a consumer group that has members.
func (r *Registry) Group(name string) (Group, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	g := r.mu.consumers[name]
	if g == nil {
		return Group{}, false
	}
	out := Group{Name: name, Type: g.kind, Model: g.model, From: g.from}
	for _, m := range g.members {
		out.Members = append(out.Members, m.client)
	}
	sortClients(out.Members)
	for _, s := range g.subscriptions {
		out.Subscriptions = append(out.Subscriptions, *s)
	}
	slices.SortFunc(out.Subscriptions, func(a, b Subscription) int {
		if a.Topic < b.Topic {
			return -1
		}
		return 1
	})
	return out, true
}

// Model returns type and model of a group that has members; pull asks for each request.
func (r *Registry) Model(name string) (kind, model string, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	g := r.mu.consumers[name]
	if g == nil {
		return "", "", false
	}
	return g.kind, g.model, true
}

// Subscription returns the group's subscription to a topic: that of the newest heartbeat,
// or else one that came with a request. The caller must not change it.
func (r *Registry) Subscription(group, topic string) (*Subscription, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if g := r.mu.consumers[group]; g != nil {
		if s := g.subscriptions[topic]; s != nil {
			return s, true
		}
	}
	if p, ok := r.mu.passing[group][topic]; ok {
		return p.sub, true
	}
	return nil, false
}

// Subscriptions returns the different subscriptions that live members of a group, and
// requests on its behalf, have to a topic: usually one. The caller must not change them.
func (r *Registry) Subscriptions(group, topic string) []*Subscription {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []*Subscription
	add := func(s *Subscription) {
		if s != nil && !slices.ContainsFunc(out, s.Equal) {
			out = append(out, s)
		}
	}
	if g := r.mu.consumers[group]; g != nil {
		for _, m := range g.members {
			add(m.subscriptions[topic])
		}
	}
	if p, ok := r.mu.passing[group][topic]; ok {
		add(p.sub)
	}
	return out
}

// GroupsOf returns the consumer groups with members that subscribe to a topic, sorted.
func (r *Registry) GroupsOf(topic string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []string
	for name, g := range r.mu.consumers {
		if g.subscriptions[topic] != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Producers returns the members of a producer group.
func (r *Registry) Producers(group string) []Client {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Client
	for _, m := range r.mu.producers[group] {
		out = append(out, m.client)
	}
	sortClients(out)
	return out
}

// Seen is a client and when it was last heard of.
type Seen struct {
	Client Client
	At     time.Time
}

// AllProducers returns the members of all producer groups, by group.
func (r *Registry) AllProducers() map[string][]Seen {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make(map[string][]Seen, len(r.mu.producers))
	for name, members := range r.mu.producers {
		for _, m := range members {
			out[name] = append(out[name], Seen{m.client, m.seen})
		}
		slices.SortFunc(out[name], func(a, b Seen) int { return strings.Compare(a.Client.ID, b.Client.ID) })
	}
	return out
}

// ConsumerGroups returns the names of all consumer groups with members, sorted.
func (r *Registry) ConsumerGroups() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]string, 0, len(r.mu.consumers))
	for name := range r.mu.consumers {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Find returns the channel of one client of a consumer group.
func (r *Registry) Find(group, clientID string) (Client, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if g := r.mu.consumers[group]; g != nil {
		for _, m := range g.members {
			if m.client.ID == clientID {
				return m.client, true
			}
		}
	}
	return Client{}, false
}

// Present tells whether a client of this id is connected.
func (r *Registry) Present(clientID string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.mu.present[clientID] > 0
}
