// Package register is this broker's registration with its name servers: that of its own
// process, told by a function call, and those elsewhere, told by Remoting requests, of
// Bolide or of Apache RocketMQ.
//
// Invariants: the name server of this process knows of a change before Changed returns.
// Each other one has a link of its own, so one that is down delays nobody; a link tells
// its name server of everything that changed since its last success, whole after each
// new connection, and tries again each second while it fails, so any start order works
// and a restarted name server has the routes back at once. Announce waits for the links
// that are up, and for no longer than its limit. A farewell is sent at a clean stop. A topic
// that a send has made is made by the other brokers too, as far as they have no such topic.
//
// Neighbours: topic's events call Changed, publish and clients wait with Announce, node
// gives the list of name servers and runs Run.
package register

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// Local is the name server of this process.
type Local interface {
	// Whole tells of all topics; Some of those that have changed or are gone.
	Whole(topics []remoting.TopicConfig, version remoting.DataVersion) error
	Some(changed []remoting.TopicConfig, gone []string, version remoting.DataVersion) error
}

// Options is what a registration needs. Config and Topics are required.
type Options struct {
	Config *config.Live[config.Broker] // names, id, the list of name servers, the period
	Topics *topic.Table
	Local  Local // nil = there is none in this process
	// Others lists the brokers that carry a topic, other than this one, as the name server
	// of this process knows them; nil = there is none in this process.
	Others func(topic string) []string
	Client *transport.Client // for name servers elsewhere; required if there are any
	// Address is where clients reach this broker, given this end of the connection to
	// the name server.
	Address func(local netip.AddrPort) string
	// HAAddress is where slaves reach this broker; nil = nowhere.
	HAAddress func(local netip.AddrPort) string
	Retry     time.Duration // between attempts while a name server is down; 0 = 1 s
	Limit     time.Duration // how long Announce waits at most; 0 = 2 s
	Log       *slog.Logger
}

// Registration is the links to all name servers.
type Registration struct {
	o  Options
	mu struct {
		sync.Mutex
		links map[string]*link
		made  []string // topics to spread
	}
	wake    chan struct{} // the list of name servers may have changed
	spreads chan struct{} // there is something to spread
}

// New returns a registration that has told nobody yet.
func New(o Options) *Registration {
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.Limit == 0 {
		o.Limit = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Registration{o: o, wake: make(chan struct{}, 1), spreads: make(chan struct{}, 1)}
	r.mu.links = make(map[string]*link)
	return r
}

// Start tells the name server of this process of all topics, and again after a change of
// what is told of each. Call it when the broker can answer requests; links begin with Run.
func (r *Registration) Start() error {
	if r.o.Local == nil {
		return nil
	}
	table := r.o.Topics.Remoting()
	topics := make([]remoting.TopicConfig, 0, len(table.TopicConfigTable))
	for _, c := range table.TopicConfigTable {
		topics = append(topics, r.effective(c))
	}
	return r.o.Local.Whole(topics, table.DataVersion)
}

// Changed tells of topics that were created, changed or deleted: the name server of this
// process before it returns, others soon.
func (r *Registration) Changed(names []string) {
	if r.o.Local != nil {
		changed, gone := r.pick(names)
		if err := r.o.Local.Some(changed, gone, r.o.Topics.Version()); err != nil {
			r.o.Log.Error("the name server of this process did not take a change", "topics", names, "err", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.mu.links {
		l.add(names, nil)
	}
}

// pick splits names into topics that are there and those that are not.
func (r *Registration) pick(names []string) (changed []remoting.TopicConfig, gone []string) {
	for _, name := range names {
		if c, ok := r.o.Topics.Get(name); ok {
			changed = append(changed, r.effective(c.Remoting()))
		} else {
			gone = append(gone, name)
		}
	}
	return changed, gone
}

// effective is a topic as others are told of it: the broker as a whole may allow less.
func (r *Registration) effective(c remoting.TopicConfig) remoting.TopicConfig {
	c.Perm &= r.o.Config.Get().BrokerPermission | topic.PermInherit
	return c
}

// Announce calls done when every name server that is up knows the topics, or when the
// limit is over: at once where there are none elsewhere (R109).
func (r *Registration) Announce(names []string, done func()) {
	a := &announcement{done: done, waiting: 1}
	r.mu.Lock()
	for _, l := range r.mu.links {
		if l.isUp() {
			a.waiting++
			l.add(names, a)
		}
	}
	r.mu.Unlock()
	if a.waiting > 1 {
		a.limit(r.o.Limit)
	}
	a.told()
}

// announcement is somebody who waits for several links.
type announcement struct {
	mu      sync.Mutex
	waiting int
	done    func()
	timer   *time.Timer
}

func (a *announcement) limit(d time.Duration) {
	t := time.AfterFunc(d, func() { a.finish(true) })
	a.mu.Lock()
	a.timer = t
	a.mu.Unlock()
}

// told counts one link that has answered or failed.
func (a *announcement) told() { a.finish(false) }

func (a *announcement) finish(now bool) {
	a.mu.Lock()
	a.waiting--
	done, timer := a.done, a.timer
	if done == nil || a.waiting > 0 && !now {
		a.mu.Unlock()
		return
	}
	a.done = nil
	a.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	done()
}

// Refresh looks at the settings again, the list of name servers among them, and tells all
// of them of all topics.
func (r *Registration) Refresh() {
	if err := r.Start(); err != nil {
		r.o.Log.Error("the name server of this process did not take a change of settings", "err", err)
	}
	r.mu.Lock()
	for _, l := range r.mu.links {
		l.renew()
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Up tells how many of the name servers elsewhere know this broker.
func (r *Registration) Up() (up, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.mu.links {
		if l.isUp() {
			up++
		}
	}
	return up, len(r.mu.links)
}

// Run keeps the links until ctx ends; each then sends its farewell.
func (r *Registration) Run(ctx context.Context) error {
	groups := make(map[string]*lifecycle.Group)
	spread := lifecycle.New(r.o.Log)
	spread.Go("new topics", r.spreading)
	for {
		addresses := config.SplitAddresses(r.o.Config.Get().NamesrvAddr)
		for _, addr := range addresses {
			if groups[addr] == nil {
				groups[addr] = r.connect(addr)
			}
		}
		var errs []error
		for addr, g := range groups {
			if ctx.Err() != nil || !slices.Contains(addresses, addr) {
				r.mu.Lock()
				delete(r.mu.links, addr)
				r.mu.Unlock()
				errs = append(errs, g.Stop())
				delete(groups, addr)
			}
		}
		if err := errors.Join(append(errs, ctx.Err())...); err != nil {
			return errors.Join(err, spread.Stop())
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
	}
}

func (r *Registration) connect(addr string) *lifecycle.Group {
	l := newLink(r, addr)
	r.mu.Lock()
	r.mu.links[addr] = l
	r.mu.Unlock()
	g := lifecycle.New(r.o.Log)
	g.Go("registration with "+addr, l.run)
	return g
}
