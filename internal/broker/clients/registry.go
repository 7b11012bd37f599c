package clients

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
)

// Options is what a registry needs. Config, Topics and Groups are required.
type Options struct {
	Config *config.Live[config.Broker]
	Topics *topic.Table
	Groups *group.Table
	// Announce calls done when the name servers know the topics, or can not be reached;
	// nil means that there is nobody to tell.
	Announce func(topics []string, done func())
	Events   Events
	Log      *slog.Logger
}

// Events tells others what happened; all are called under no lock.
type Events struct {
	// GroupChanged is called when a group has got or lost a member or a subscription.
	GroupChanged func(group string)
	// Conflict is called when a member's new subscriptions are not those of its group.
	Conflict func(c Conflict)
	// ProducerJoined is called when a producer group has got a member.
	ProducerJoined func(group string)
	// ClientGone is called when the last channel of a client is gone.
	ClientGone func(clientID string)
}

type member struct {
	client        Client
	seen          time.Time
	fingerprint   int32
	full          bool // its subscriptions are known
	subscriptions map[string]*Subscription
}

type consumerGroup struct {
	kind, model, from string
	members           map[Channel]*member
	subscriptions     map[string]*Subscription
	notified          time.Time // when members were last told of a change
	silent            bool      // the group does not want to be told
}

// passing is a subscription that came with a request and not with a heartbeat.
type passing struct {
	sub  *Subscription
	seen time.Time
}

// memberships are the groups that a channel is a member of. A client has a handful, but
// may claim to have half a million: nothing may look through them for each.
type memberships struct{ consumers, producers map[string]struct{} }

// Registry is all clients of this broker.
type Registry struct {
	o  Options
	mu struct {
		sync.RWMutex
		consumers map[string]*consumerGroup
		producers map[string]map[Channel]*member
		passing   map[string]map[string]passing // group → topic
		present   map[string]int                // client id → memberships
		producing map[string]Client             // client id → the producer of its newest heartbeat
		joined    map[Channel]*memberships      // what a closing channel leaves
		pending   map[string]time.Time          // groups to be told later, and when
		closed    map[Channel]time.Time         // closed a moment ago: late heartbeats do not revive them
	}
	wake chan struct{}
}

// New returns an empty registry.
func New(o Options) *Registry {
	if o.Announce == nil {
		o.Announce = func(_ []string, done func()) { done() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Registry{o: o, wake: make(chan struct{}, 1)}
	r.mu.consumers = make(map[string]*consumerGroup)
	r.mu.producers = make(map[string]map[Channel]*member)
	r.mu.passing = make(map[string]map[string]passing)
	r.mu.present = make(map[string]int)
	r.mu.producing = make(map[string]Client)
	r.mu.joined = make(map[Channel]*memberships)
	r.mu.pending = make(map[string]time.Time)
	r.mu.closed = make(map[Channel]time.Time)
	return r
}

// Unregister takes a client out of a producer group and a consumer group; either may be
// empty.
func (r *Registry) Unregister(ch Channel, producerGroup, consumerGroup string) {
	var after aftermath
	r.mu.Lock()
	if producerGroup != "" {
		r.dropProducer(producerGroup, ch, &after)
	}
	if consumerGroup != "" {
		r.dropConsumer(consumerGroup, ch, &after)
	}
	r.mu.Unlock()
	r.finish(&after)
}

// CloseChannel takes a channel out of every group.
func (r *Registry) CloseChannel(ch Channel) {
	var after aftermath
	r.mu.Lock()
	r.mu.closed[ch] = time.Now()
	r.poke()
	if j := r.mu.joined[ch]; j != nil {
		for _, name := range slices.Sorted(maps.Keys(j.producers)) {
			r.dropProducer(name, ch, &after)
		}
		for _, name := range slices.Sorted(maps.Keys(j.consumers)) {
			r.dropConsumer(name, ch, &after)
		}
	}
	r.mu.Unlock()
	r.finish(&after)
}

// Run expires silent members and sends collected notices until ctx ends. It sleeps while
// there is nobody who could be silent.
func (r *Registry) Run(ctx context.Context) error {
	const scan = 10 * time.Second
	next := time.Now().Add(scan)
	timer := time.NewTimer(scan)
	defer timer.Stop()
	for {
		expiry := timer.C
		if r.empty() {
			expiry = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		case <-expiry:
		}
		now := time.Now()
		if !now.Before(next) {
			r.expire(now)
			next = now.Add(scan)
		}
		due := r.sendPending(now)
		if due.IsZero() || due.After(next) {
			due = next
		}
		timer.Reset(max(time.Until(due), 0))
	}
}

// empty tells whether nothing here can expire.
func (r *Registry) empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.mu.joined)+len(r.mu.passing)+len(r.mu.closed)+len(r.mu.pending) == 0
}

func (r *Registry) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// expire drops what has been silent for too long.
func (r *Registry) expire(now time.Time) {
	settings := r.o.Config.Get()
	limit := time.Duration(settings.ChannelExpiredTimeout) * time.Millisecond
	passingLimit := time.Duration(settings.SubscriptionExpiredTimeout) * time.Millisecond
	var after aftermath
	silent := make(map[Channel]struct{})
	r.mu.Lock()
	for name, members := range r.mu.producers {
		for ch, m := range members {
			if now.Sub(m.seen) > limit {
				silent[ch] = struct{}{}
				r.dropProducer(name, ch, &after)
			}
		}
	}
	for name, g := range r.mu.consumers {
		for ch, m := range g.members {
			if now.Sub(m.seen) > limit {
				silent[ch] = struct{}{}
				r.dropConsumer(name, ch, &after)
			}
		}
	}
	for name, topics := range r.mu.passing {
		for t, p := range topics {
			if now.Sub(p.seen) > passingLimit {
				delete(topics, t)
			}
		}
		if len(topics) == 0 {
			delete(r.mu.passing, name)
		}
	}
	for ch, when := range r.mu.closed {
		if now.Sub(when) > time.Minute {
			delete(r.mu.closed, ch)
		}
	}
	r.mu.Unlock()
	r.finish(&after)
	for ch := range silent {
		r.o.Log.Info("closing a channel without heartbeats", "remote", ch.RemoteAddr())
		ch.Close()
	}
}

// dropProducer and dropConsumer remove one membership; mu is held.
func (r *Registry) dropProducer(name string, ch Channel, after *aftermath) {
	members := r.mu.producers[name]
	m := members[ch]
	if m == nil {
		return
	}
	delete(members, ch)
	if len(members) == 0 {
		delete(r.mu.producers, name)
	}
	r.leave(ch, func(j *memberships) map[string]struct{} { return j.producers }, name)
	if j := r.mu.joined[ch]; j == nil || len(j.producers) == 0 {
		r.unproducing(m.client.ID, ch)
	}
	r.absent(m.client.ID, after)
}

// unproducing forgets that a client produces on a channel; mu is held.
func (r *Registry) unproducing(clientID string, ch Channel) {
	if r.mu.producing[clientID].Channel == ch {
		delete(r.mu.producing, clientID)
	}
}

func (r *Registry) dropConsumer(name string, ch Channel, after *aftermath) {
	g := r.mu.consumers[name]
	if g == nil || g.members[ch] == nil {
		return
	}
	m := g.members[ch]
	delete(g.members, ch)
	if len(g.members) == 0 {
		delete(r.mu.consumers, name)
		delete(r.mu.pending, name)
	}
	r.leave(ch, func(j *memberships) map[string]struct{} { return j.consumers }, name)
	r.absent(m.client.ID, after)
	after.changed(name)
}

// join and leave keep what a channel is a member of; mu is held.
func (r *Registry) join(ch Channel, set func(*memberships) map[string]struct{}, name string) {
	j := r.mu.joined[ch]
	if j == nil {
		j = &memberships{consumers: make(map[string]struct{}), producers: make(map[string]struct{})}
		r.mu.joined[ch] = j
		if len(r.mu.joined) == 1 {
			r.poke()
		}
	}
	set(j)[name] = struct{}{}
}

func (r *Registry) leave(ch Channel, set func(*memberships) map[string]struct{}, name string) {
	j := r.mu.joined[ch]
	if j == nil {
		return
	}
	delete(set(j), name)
	if len(j.consumers)+len(j.producers) == 0 {
		delete(r.mu.joined, ch)
	}
}

func (r *Registry) absent(clientID string, after *aftermath) {
	if r.mu.present[clientID]--; r.mu.present[clientID] <= 0 {
		delete(r.mu.present, clientID)
		after.gone = append(after.gone, clientID)
	}
}

// aftermath is what has to be told once the lock is gone.
type aftermath struct {
	groups []string
	known  map[string]struct{} // the same groups
	gone   []string
	joined []string // producer groups

	conflicts []Conflict
}

func (a *aftermath) changed(group string) {
	if _, ok := a.known[group]; ok {
		return
	}
	if a.known == nil {
		a.known = make(map[string]struct{})
	}
	a.known[group] = struct{}{}
	a.groups = append(a.groups, group)
}

// finish tells of changes: members of small groups at once, large groups collected.
func (r *Registry) finish(after *aftermath) {
	for _, name := range after.groups {
		r.notify(name, time.Now())
		if r.o.Events.GroupChanged != nil {
			r.o.Events.GroupChanged(name)
		}
	}
	if r.o.Events.ProducerJoined != nil {
		for _, name := range after.joined {
			r.o.Events.ProducerJoined(name)
		}
	}
	if r.o.Events.Conflict != nil {
		for _, c := range after.conflicts {
			r.o.Events.Conflict(c)
		}
	}
	if r.o.Events.ClientGone != nil {
		for _, id := range after.gone {
			r.o.Events.ClientGone(id)
		}
	}
}

// quiet is how long a group of n members is left alone after a notice: n members that
// join one after the other cause n notices to n members otherwise.
func quiet(n int) time.Duration {
	if n <= 16 {
		return 0
	}
	return min(time.Duration(n)*time.Millisecond, 5*time.Second)
}

// Reassign makes the members of a group ask for their assignments anew.
func (r *Registry) Reassign(group string) { r.notify(group, time.Now()) }

// notify tells the members of a group that it has changed, now or as soon as its quiet
// time is over.
func (r *Registry) notify(name string, now time.Time) {
	if !r.o.Config.Get().NotifyConsumerIdsChangedEnable {
		return
	}
	var channels []Channel
	later := false
	r.mu.Lock()
	if g := r.mu.consumers[name]; g != nil && !g.silent && g.model != Broadcasting {
		if due := g.notified.Add(quiet(len(g.members))); now.Before(due) {
			if _, ok := r.mu.pending[name]; !ok {
				r.mu.pending[name] = due
				later = true
			}
		} else {
			g.notified = now
			delete(r.mu.pending, name)
			channels = make([]Channel, 0, len(g.members))
			for ch := range g.members {
				channels = append(channels, ch)
			}
		}
	}
	r.mu.Unlock()
	for _, ch := range channels {
		ch.ConsumersChanged(name)
	}
	if later {
		r.poke()
	}
}

// sendPending sends the collected notices that are due and returns when the next one is.
func (r *Registry) sendPending(now time.Time) (next time.Time) {
	var due []string
	r.mu.Lock()
	for name, at := range r.mu.pending {
		if !at.After(now) {
			due = append(due, name)
			delete(r.mu.pending, name)
		} else if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	r.mu.Unlock()
	for _, name := range due {
		r.notify(name, now)
	}
	return next
}
