// Package local is proxy.Backend over a broker in this process.
//
// Invariants: it translates and decides nothing; the broker's own errors come wrapped
// under the proxy's, once. A client of the proxy is one channel of the broker's registry
// for as long as it is there, so that presence and administration see clients of both
// protocols alike.
//
// Neighbours: node makes one for each broker of the process and gives it to proxy.New;
// publish, pop, clients and the tables do the work.
package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/proxy"
)

// Options are the parts of the broker that are used.
type Options struct {
	Name string // of the broker
	// Permission is what the broker as a whole allows, in the bits of a topic's.
	Permission func() int32
	Topics     Topics
	Groups     Groups
	Publish    Publisher
	// Recall takes a message back that is not due yet.
	Recall func(topic, handle, group string, done func(id string, err error))
	Pop    Popper
	Txn    Transactions
	Lites  Lites
	// Pops is told which groups pop without having been assigned to; nil: nobody asks.
	Pops func(group, topic string)
	// Release ends the long polls of one waiter.
	Release func(waiter *longpoll.Peer)
	Clients *clients.Registry
}

// Topics is what is asked of the topic table.
type Topics interface {
	Get(name string) (*topic.Config, bool)
}

// Groups is what is asked of the group table.
type Groups interface {
	Get(name string) (*group.Config, bool)
}

// Backend implements proxy.Backend.
type Backend struct {
	o      Options
	routes sync.Map // topic name → *cachedRoute

	members struct {
		sync.Mutex
		channels map[string]*channel // by client id
		closing  bool                // no client is asked any more
	}
	tasks lifecycle.Tasks // clients that are being asked
}

var _ proxy.Backend = (*Backend)(nil)

// New returns a backend over the broker. It starts nothing.
func New(o Options) *Backend {
	b := &Backend{o: o}
	b.members.channels = make(map[string]*channel)
	return b
}

// cachedRoute is the route made from one configuration of a topic, under one permission of the
// broker; configurations are never changed, so the pointer tells whether it is still the topic's.
type cachedRoute struct {
	cfg        *topic.Config
	permission int32
	route      *proxy.Route
}

func (c *cachedRoute) of(cfg *topic.Config, permission int32) bool {
	return c.cfg == cfg && c.permission == permission
}

// Route implements proxy.Directory.
func (b *Backend) Route(_ context.Context, name string) (*proxy.Route, error) {
	cfg, known := b.o.Topics.Get(name)
	if !known {
		b.routes.Delete(name)
		return nil, fmt.Errorf("%w: %s", proxy.ErrTopicNotFound, name)
	}
	permission := b.o.Permission()
	if c, is := b.routes.Load(cfg.Name); is && c.(*cachedRoute).of(cfg, permission) {
		return c.(*cachedRoute).route, nil
	}
	r := &proxy.Route{
		Topic: cfg.Name,
		Kind:  proxy.KindNamed(cfg.MessageType()),
		Brokers: []proxy.BrokerQueues{{
			Broker:   b.o.Name,
			Read:     cfg.ReadQueues,
			Write:    cfg.WriteQueues,
			Readable: cfg.Readable() && permission&topic.PermRead != 0,
			Writable: cfg.Writable() && permission&topic.PermWrite != 0,
		}},
	}
	b.routes.Store(cfg.Name, &cachedRoute{cfg, permission, r})
	return r, nil
}

// Group implements proxy.Directory.
func (b *Backend) Group(_ context.Context, name string) (proxy.Group, error) {
	cfg, known := b.o.Groups.Get(name)
	if !known {
		cfg = group.New(name)
	}
	return groupOf(cfg), nil
}

func groupOf(cfg *group.Config) proxy.Group {
	g := proxy.Group{
		Name:        cfg.Name,
		FIFO:        cfg.ConsumeOrderly,
		MaxAttempts: cfg.RetryMaxTimes + 1,
		LiteQuota:   int32(lite.Quota(cfg)),
		LiteTopic:   cfg.Attributes["lite.bind.topic"],
	}
	if cfg.Retry.Exponential {
		g.Backoff = proxy.Backoff{
			Initial:    time.Duration(cfg.Retry.Initial) * time.Millisecond,
			Max:        time.Duration(cfg.Retry.Max) * time.Millisecond,
			Multiplier: float32(cfg.Retry.Multiplier),
		}
		return g
	}
	for _, ms := range cfg.Retry.Steps() {
		g.Backoff.Next = append(g.Backoff.Next, time.Duration(ms)*time.Millisecond)
	}
	return g
}

var (
	_ Publisher = (*publish.Publisher)(nil)
	_ Popper    = (*pop.Popper)(nil)
)
