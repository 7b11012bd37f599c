// Package lite is lite topics: many small topics below a parent, each one queue in order,
// whose messages a client gets from those that it has subscribed to, by one request for all
// of them. It knows who has subscribed to what, which of it has messages, and when a lite
// topic that nobody sends to expires.
//
// A lite topic's queue, %LMQ%$parent$lite, is popped in order like any other by package pop;
// this package only decides which queue a receive looks into. A queue with messages that its
// group may take is an event: it is put among the events of every client of the group that has
// subscribed to it, once each, and one client that waits is woken. Whoever is first takes the
// messages; the others find nothing and drop the event. So no event is lost with a client, and
// none has to be given to another one later, as Apache RocketMQ does.
//
// Invariants: a queue that has messages which its group may take is among the events of all
// its subscribers, or in the hands of a receive; a client's events are at most its
// subscriptions; mu is held for memory operations alone. Subscriptions are the clients' own,
// who say them again now and then: they are in memory, and end with the presence of the client
// or when nothing was heard of it for some minutes of real time. Expiry is by the protocol's
// clock.
//
// Neighbours: fronts and proxy/local call Sync, Receive and Leave, the fronts ask what there
// is; pop delivers and tells what is free again; longpoll parks; broker tells what has arrived.
package lite

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Errors of Sync, Receive and of questions; what was wrong exactly is wrapped around them.
var (
	ErrTopicNotFound = errors.New("topic does not exist")
	ErrGroupNotFound = errors.New("subscription group does not exist")
	ErrGroupDisabled = errors.New("subscription group may not consume")
	// ErrNotLite: the topic's message.type is not LITE.
	ErrNotLite = errors.New("topic has no lite topics")
	// ErrNotBound: the group's lite.bind.topic is not the topic.
	ErrNotBound = errors.New("group is not bound to the topic")
	// ErrQuota: the client or the broker has as many subscriptions as it may.
	ErrQuota = errors.New("too many lite subscriptions")
	// ErrIllegal: the request contradicts the group's configuration or itself.
	ErrIllegal = errors.New("illegal lite subscription")
)

// Popper is what is asked of pop.
type Popper interface {
	Pop(r pop.Request, done func(pop.Result, error))
	Go(do func(closing bool))
	ForgetQueue(group, queue string) error // with all that the group has of it
	ForgetIdle()                           // lets go of what can be read again
}

// Store is what is asked of the storage engine.
type Store interface {
	MinOffset(queue string, id int32) int64
	MaxOffset(queue string, id int32) int64
	StoreTimeAt(queue string, id int32, offset int64) int64
	LightTime(queue string) int64 // of its last message; negative: not known
	EachLight(prefix string, f func(queue string, end int64) bool)
	ExpireLight(queue string, end int64) (bool, error)
}

// Offsets is what is asked of the table of consumer offsets.
type Offsets interface {
	Query(group, queue string, id int32) (int64, bool)
	Reset(group, queue string, id int32, offset int64)
	Delete(group, queue string) error
}

// Options are what a Registry needs.
type Options struct {
	Pop      Popper
	Store    Store
	Offsets  Offsets
	LongPoll *longpoll.Table
	Topics   interface {
		Get(name string) (*topic.Config, bool)
		All() []*topic.Config
	}
	Groups interface {
		Get(name string) (*group.Config, bool)
		All() []*group.Config
	}
	Clock  *clock.Clock
	Broker *config.Live[config.Broker]
	Events Events
	Log    *slog.Logger
}

// Events tell what happened; each may be nil and must not block.
type Events struct {
	Expired func(parent, lite string)
}

// Registry is who has subscribed to which lite topics, and what there is for whom.
type Registry struct {
	o        Options
	openedAt int64
	alarm    *clock.Alarm
	turn     atomic.Uint32 // whose turn it is among a group's clients

	mu struct {
		sync.Mutex
		clients map[string]*client
		topics  map[string]*liteTopic // that somebody has subscribed to, by queue
		wild    map[string][]*crowd   // groups of all lite topics, by parent
		count   int                   // subscriptions in all
	}
}

// client is one that has subscribed.
type client struct {
	id, group, parent string
	topics            map[*liteTopic]struct{}
	crowd             *crowd // of a client whose group takes all lite topics
	events            events
	said              time.Time // when it last said what it wants
	asked             int64     // when it last asked for messages, by the protocol's clock
	unsubscribed      func(lite string)
	wait              longpoll.Key // of its receives
	// moving are the queues that it has subscribed to, and in which the group's offset is still
	// to be moved: nothing is taken from them before.
	moving map[string]*move

	// attempt is the client's last request that got something: asked again under this name,
	// it gets that again.
	attempt string
	got     []string
}

// liteTopic is one that somebody has subscribed to.
type liteTopic struct {
	queue   string
	clients []*client
}

// crowd is the clients of a group that takes all lite topics of its parent. They share their
// events.
type crowd struct {
	group   string
	clients []*client
	events  events
	wait    longpoll.Key
}

// events are the queues that may have something, the oldest first.
type events struct {
	list []string
	in   map[string]struct{}
}

func (e *events) add(queue string) {
	if _, there := e.in[queue]; there {
		return
	}
	if e.in == nil {
		e.in = make(map[string]struct{})
	}
	e.in[queue] = struct{}{}
	e.list = append(e.list, queue)
}

// take gives the oldest event.
func (e *events) take() (queue string, ok bool) {
	if len(e.list) == 0 {
		return "", false
	}
	queue = e.list[0]
	e.list[0] = ""
	e.list = e.list[1:]
	delete(e.in, queue)
	if len(e.list) == 0 {
		e.list, e.in = nil, nil // a client that sleeps costs nothing
	}
	return queue, true
}

// events are those that c takes from.
func (c *client) from() *events {
	if c.crowd != nil {
		return &c.crowd.events
	}
	return &c.events
}

// New returns a registry without subscriptions.
func New(o Options) *Registry {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Registry{o: o, openedAt: o.Clock.NowMilli(), alarm: o.Clock.NewAlarm()}
	r.mu.clients = make(map[string]*client)
	r.mu.topics = make(map[string]*liteTopic)
	r.mu.wild = make(map[string][]*crowd)
	return r
}

// Close forgets the clock. The loop must have ended.
func (r *Registry) Close() { r.alarm.Stop() }

// Arrived tells that a lite topic's queue has a new message. It runs on the dispatcher and
// does not wait.
func (r *Registry) Arrived(queue string) { r.ready("", queue) }

// Free tells that a queue has messages that a group may take again.
func (r *Registry) Free(group, queue string) { r.ready(group, queue) }

// ready makes the queue an event of all who may take from it, of one group or, without, of
// all, and wakes one of each group.
func (r *Registry) ready(group, queue string) {
	r.mu.Lock()
	t := r.mu.topics[queue]
	var crowds []*crowd
	if len(r.mu.wild) > 0 {
		if parent, _, ok := names.OfLite(queue); ok {
			crowds = r.mu.wild[parent]
		}
	}
	if t == nil && len(crowds) == 0 {
		r.mu.Unlock()
		return
	}
	var wake [4]longpoll.Key
	keys := wake[:0]
	if t != nil {
		turn := int(r.turn.Add(1))
		n := len(t.clients)
		for i := range n {
			c := t.clients[(i+turn)%n]
			if group != "" && c.group != group {
				continue
			}
			c.events.add(t.queue)
			if c.moving[queue] == nil {
				keys = append(keys, c.key())
			}
		}
	}
	for _, w := range crowds {
		if group == "" || w.group == group {
			w.events.add(queue)
			keys = append(keys, w.wait)
		}
	}
	r.mu.Unlock()
	r.wakeOneOfEach(keys)
}

// wakeOneOfEach wakes one that waits of each group. The keys of one group's clients are those
// that begin alike.
func (r *Registry) wakeOneOfEach(keys []longpoll.Key) {
	for i, k := range keys {
		if k.Group == "" || !r.o.LongPoll.WakeNext(k) {
			continue
		}
		for j := i + 1; j < len(keys); j++ {
			if keys[j].Topic == k.Topic {
				keys[j].Group = ""
			}
		}
	}
}

// key is what c's receives wait for.
func (c *client) key() longpoll.Key {
	if c.crowd != nil {
		return c.crowd.wait
	}
	return c.wait
}

// waitKey is what the receives of a client wait for, or of all clients of a group that share
// their events. No message has such a topic, so only ready wakes them.
func waitKey(group, clientID string) longpoll.Key {
	return longpoll.Key{Topic: "\x00lite/" + group, Group: clientID}
}

// everybody stands for the client where all share.
const everybody = "*"
