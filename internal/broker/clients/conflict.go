package clients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// Conflict is two members of one group that want different things of a topic: a message
// goes to one of them, whatever the other wants, so all members have to want the same.
type Conflict struct {
	Group, Topic         string
	One, Other           string // client ids
	OneWants, OtherWants string // what each wants of the topic; nothing where it does not subscribe
}

// String says it in one sentence.
func (c Conflict) String() string {
	return fmt.Sprintf("group %s, topic %s: client %s subscribes to %s, client %s to %s",
		c.Group, c.Topic, c.One, c.OneWants, c.Other, c.OtherWants)
}

// Conflicts returns for each topic of a group two members that want different things of
// it, sorted by topic; nothing where all agree.
func (r *Registry) Conflicts(group string) []Conflict {
	r.mu.RLock()
	defer r.mu.RUnlock()
	g := r.mu.consumers[group]
	if g == nil {
		return nil
	}
	of := make(map[string]Conflict)
	members := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		if m.full {
			members = append(members, m)
		}
	}
	slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.client.ID, b.client.ID) })
	for _, m := range members[min(1, len(members)):] {
		for _, c := range between(group, members[0], m) {
			if _, known := of[c.Topic]; !known {
				of[c.Topic] = c
			}
		}
	}
	out := make([]Conflict, 0, len(of))
	for _, c := range of {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Conflict) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

// newConflict compares a member whose subscriptions are new with any other one: as long as
// a group agrees that is enough to notice the first who does not. mu is held.
func (g *consumerGroup) newConflict(group string, m *member) (Conflict, bool) {
	for _, other := range g.members {
		if other == m || !other.full {
			continue
		}
		for _, c := range between(group, other, m) {
			return c, true
		}
		return Conflict{}, false
	}
	return Conflict{}, false
}

// between lists the topics of which two members want different things.
func between(group string, one, other *member) []Conflict {
	var out []Conflict
	note := func(topic string, a, b *Subscription) {
		if names.IsRetry(topic) || a != nil && b != nil && (a == b || a.Equal(b)) {
			return
		}
		out = append(out, Conflict{Group: group, Topic: topic, One: one.client.ID, Other: other.client.ID, OneWants: a.wants(), OtherWants: b.wants()})
	}
	for topic, a := range one.subscriptions {
		note(topic, a, other.subscriptions[topic])
	}
	for topic, b := range other.subscriptions {
		if one.subscriptions[topic] == nil {
			note(topic, nil, b)
		}
	}
	slices.SortFunc(out, func(a, b Conflict) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

func (s *Subscription) wants() string {
	switch {
	case s == nil:
		return "nothing"
	case s.Kind != "" && s.Kind != "TAG":
		return fmt.Sprintf("%s %.200q", s.Kind, s.Expression)
	}
	return fmt.Sprintf("%.200q", s.Expression)
}
