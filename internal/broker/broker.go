// Package broker puts the domains of a broker together: it opens them in the order of
// recovery, connects events to those who wait for them, and closes them in the reverse
// order.
//
// Invariants: recovery goes state, tables, store (which replays what was dispatched),
// offsets and progress brought back into their queues, and only then requests (P4); what
// was dispatched reaches waiting requests, timers and POP after readers can see it; a
// broker that failed to open has closed what it had opened.
//
// Neighbours: node opens a Broker, runs its loops and closes it; fronts and proxy/local
// take it as their parameter and call one domain of it per request.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/exports"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/pull"
	"github.com/bolidemq/bolide/internal/broker/qlock"
	"github.com/bolidemq/bolide/internal/broker/reply"
	"github.com/bolidemq/bolide/internal/broker/timer"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Options is what a broker needs. FS, Dir, Broker and StoreConfig are required.
type Options struct {
	FS          vfs.FS
	Dir         string // the store's root folder
	Broker      *config.Live[config.Broker]
	StoreConfig *config.Live[config.Store]
	// StoreHost is the address that records and message ids carry: the announced one.
	StoreHost netip.AddrPort
	Clock     *clock.Clock
	// Announce makes new topics known to the name servers and then calls done; nil: there
	// are none.
	Announce func(topics []string, done func())
	// Spread has other brokers make topics that a send has made here; nil: there are none.
	Spread func(topics []string)
	// TopicsChanged tells of created, changed and deleted topics, for the registration.
	TopicsChanged func(names []string)
	// Reconfigured tells that settings have changed, for the registration.
	Reconfigured func()
	Version      string // of this program, for who asks how this broker is
	Tune         Tuning
	Events       Events
	Log          *slog.Logger
}

// Tuning is sizes that only tests make small. Zero fields take the defaults.
type Tuning struct {
	IndexSlots, IndexEntries int
	QueryRecords             int   // whose keys have one hash, that a query by key looks at
	MaxWaiting               int   // suspended requests in all
	NearTimers               int   // timers whose places are kept in memory
	WheelSlots, TimerLog     int64 // of Apache's timer files
	Retention                storage.Retention
}

// Events are the events of all domains, for metrics and logs.
type Events struct {
	Storage storage.Events
	Publish publish.Events
	Pull    pull.Events
	Pop     pop.Events
	Timer   timer.Events
	Wheel   timer.WheelEvents
	Txn     txn.Events
	Lite    lite.Events
	Clients clients.Events
	// Missed tells that a group's count has grown: log files went before it came to them.
	Missed func(Missed)
}

// Broker is one open broker. Its fields are its domains; they do not change while it is
// open.
type Broker struct {
	Name, Cluster string
	StoreHost     netip.AddrPort

	Config      *config.Live[config.Broker]
	StoreConfig *config.Live[config.Store]
	Clock       *clock.Clock
	State       *state.DB
	Store       *storage.Engine
	Topics      *topic.Table
	Groups      *group.Table
	Offsets     *offset.Table
	Clients     *clients.Registry
	Locks       *qlock.Table
	LongPoll    *longpoll.Table
	Publish     *publish.Publisher
	Reply       *reply.Replier
	Pull        *pull.Puller
	Pop         *pop.Popper
	Lite        *lite.Registry
	Timer       *timer.Timer
	Wheel       *timer.Wheel
	Txn         *txn.Txn
	Admin       *admin.Admin

	missed       missed
	rounds       round.Rounds
	exports      *exports.Exports
	announce     func(topics []string, done func())
	reconfigured func() // nil: nobody wants to know
	log          *slog.Logger
	// engine is Store for domains that are made before the store is open.
	engine *engine
	synced atomic.Pointer[storage.Engine] // Store once it is open, for the state's sync
}

// engine lets the domains hold the store before recovery has opened it; none of them
// uses it earlier.
type engine struct{ *storage.Engine }

// find finds messages by key, once the store is open.
func (b *Broker) find(topic, key string, max int, begin, end int64) ([]storage.Record, error) {
	return b.engine.QueryKey(topic, key, max, begin, end)
}

// catchUp returns when find finds what was stored until now.
func (b *Broker) catchUp() { b.engine.CatchUp() }

// Loop is a part of the broker that runs until it is stopped.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

// Loops are to be started in this order and stopped in the reverse order, then Close.
func (b *Broker) Loops() []Loop {
	var loops []Loop
	for _, l := range b.State.Loops() {
		loops = append(loops, Loop{l.Name, l.Run})
	}
	for _, l := range b.Store.Loops() {
		loops = append(loops, Loop{"store " + l.Name, l.Run})
	}
	// Stopped after those whose last changes it writes.
	loops = append(loops, Loop{"exports", b.exports.Run})
	for _, l := range b.Pop.Loops() {
		loops = append(loops, Loop{l.Name, l.Run})
	}
	return append(loops,
		Loop{"clock", b.watchTime},
		Loop{"offsets", b.Offsets.Run},
		Loop{"clients", b.Clients.Run},
		Loop{"long polls", b.LongPoll.Run},
		Loop{"lite topics", b.Lite.Run},
		Loop{"lite subscriptions", b.Lite.Watch},
		Loop{"delay levels", b.Timer.Run},
		Loop{"timers", b.Wheel.Run},
		Loop{"transactions", b.Txn.Run},
	)
}

// Quiesce answers all suspended requests and lets no other wait, for messages or for room on
// a full disk: the step of a stop before the connections are drained.
func (b *Broker) Quiesce() {
	b.LongPoll.Close()
	b.State.Quiesce()
}

// Refusal is why messages are refused now, whatever their topic: the disk is full, or the log
// has failed. It is nil when they are taken.
func (b *Broker) Refusal() error {
	if err := b.State.Look(); err != nil {
		return err
	}
	return b.Store.Refusal()
}

// Close writes what is only in memory and closes the files. The loops must have ended.
func (b *Broker) Close() error {
	b.Quiesce()
	b.Pop.Close()
	b.Lite.Close()
	// The offsets' own last flush may have been refused for lack of room; now the reserve is
	// there to be used.
	return errors.Join(b.Offsets.Flush(), b.Wheel.WriteApache(), b.Store.Close(), b.noteTime(), b.State.Close())
}

// Announce calls done when the name servers know the topics, or can't be reached.
func (b *Broker) Announce(topics []string, done func()) {
	if b.announce == nil {
		done()
		return
	}
	b.announce(topics, done)
}

// Configure changes settings while the broker runs: all of them, or none.
func (b *Broker) Configure(list []config.Property) error {
	ofStore := make(map[string]bool)
	for _, p := range config.List(b.StoreConfig.Get()) {
		ofStore[p.Name] = true
	}
	forBroker, forStore := make(map[string]string), make(map[string]string)
	for _, p := range list {
		if ofStore[p.Name] {
			forStore[p.Name] = p.Value
		} else {
			forBroker[p.Name] = p.Value
		}
	}
	broker, store := config.NewLive(*b.Config.Get()), config.NewLive(*b.StoreConfig.Get())
	if err := errors.Join(broker.Change(forBroker), store.Change(forStore)); err != nil {
		return err
	}
	b.Config.Replace(*broker.Get())
	b.StoreConfig.Replace(*store.Get())
	if len(forBroker) == 0 {
		return nil
	}
	err := b.Topics.Reshape(func(setting string) bool { _, changed := forBroker[setting]; return changed })
	if b.reconfigured != nil {
		b.reconfigured()
	}
	if err != nil {
		return fmt.Errorf("the settings are changed, the topics that others are made after are not: %w", err)
	}
	return nil
}

// Check is the whole check: the store's files against each other, and what the tables
// say against the store.
func (b *Broker) Check() error {
	if err := b.Store.Check(); err != nil {
		return fmt.Errorf("check of the store: %w", err)
	}
	for _, t := range b.Topics.All() {
		for _, g := range b.Offsets.GroupsOf(t.Name) {
			for queue, off := range b.Offsets.Queues(g, t.Name) {
				if end := b.Store.MaxOffset(t.Name, queue); off > end {
					return fmt.Errorf("offset %d of group %s in topic %s, queue %d is beyond its end %d", off, g, t.Name, queue, end)
				}
			}
		}
	}
	if err := b.Pop.Check(); err != nil {
		return err
	}
	for level, off := range b.Timer.Offsets() {
		if end := b.Store.MaxOffset(names.Schedule, level-1); off > end {
			return fmt.Errorf("delay level %d is at %d, beyond its queue's end %d", level, off, end)
		}
	}
	return nil
}
