package group

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/dataversion"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Options is what a table needs. Only Config is required.
type Options struct {
	State  *state.DB // nil = memory only
	Config *config.Live[config.Broker]
	Events Events
	Log    *slog.Logger
}

// Events tells others what happened, after it is durable and visible.
type Events struct {
	// Changed names groups that were created, changed or deleted. It is called under no
	// lock of the table and must not block.
	Changed func(names []string)
}

// Table is the set of all subscription groups of this broker. Get is lock-free.
//
// changing is held for the whole of a change, its commit included, so changes happen one
// after the other; only other changes wait for it. mu guards the few fields that readers
// want and is never held across the commit. A change must not be made in a completion of
// the state database: it would wait for itself.
type Table struct {
	o        Options
	configs  sync.Map // name → *Config
	changing sync.Mutex
	mu       struct {
		sync.Mutex
		version   remoting.DataVersion
		forbidden map[string]map[string]int32 // group → topic → bits
	}
}

// Open returns the table with what was stored, and the system groups.
func Open(o Options) (*Table, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	events := o.Events
	o.Events = Events{} // nobody is told of what was there from the start
	t := &Table{o: o}
	t.mu.version = remoting.DataVersion{Timestamp: time.Now().UnixMilli()}
	t.mu.forbidden = make(map[string]map[string]int32)
	if err := t.load(); err != nil {
		return nil, err
	}
	if err := t.addSystemGroups(); err != nil {
		return nil, err
	}
	t.o.Events = events
	return t, nil
}

func (t *Table) addSystemGroups() error {
	return t.change(func(c *changeSet) error {
		for _, name := range names.SystemGroups() {
			if _, ok := t.Get(name); !ok {
				c.put = append(c.put, New(name))
			}
		}
		return nil
	})
}

// Get returns the group as it is now.
func (t *Table) Get(name string) (*Config, bool) {
	c, ok := t.configs.Load(name)
	if !ok {
		return nil, false
	}
	return c.(*Config), true
}

// GetOrCreate returns the group and creates it if the broker creates groups by itself
// (or it is a system group) and the name is legal.
func (t *Table) GetOrCreate(name string) (*Config, error) {
	if c, ok := t.Get(name); ok {
		return c, nil
	}
	settings := t.o.Config.Get()
	system := settings.EnableCreateSysGroup && names.IsSystemGroup(name)
	if !settings.AutoCreateSubscriptionGroup && !system {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if err := names.CheckGroup(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIllegalName, err)
	}
	var cfg *Config
	err := t.change(func(c *changeSet) error {
		var ok bool
		if cfg, ok = t.Get(name); !ok {
			cfg = New(name)
			c.put = append(c.put, cfg)
		}
		return nil
	})
	return cfg, err
}

// Put creates or changes a group. cfg.Attributes is a change: names with a sign in front
// ("+priority.factor"). The caller keeps cfg.
func (t *Table) Put(cfg *Config) error {
	if err := names.CheckGroup(cfg.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrIllegalName, err)
	}
	if err := check(cfg); err != nil {
		return err
	}
	return t.change(func(c *changeSet) error {
		old, exists := t.Get(cfg.Name)
		var current map[string]string
		if exists {
			current = old.Attributes
		}
		attributes, err := config.AlterAttributes(!exists, config.GroupAttributes, current, cfg.Attributes)
		if err != nil {
			return err
		}
		next := cfg.Clone()
		next.Attributes = attributes
		c.put = append(c.put, next)
		return nil
	})
}

// Delete removes a group and what it is forbidden. What hangs on the group in other
// tables is removed by the use case in admin, in the same batch: DeleteWith.
func (t *Table) Delete(name string) error { return t.DeleteWith(name, nil) }

// DeleteWith is Delete; join adds what has to go with the group to the batch that does it.
func (t *Table) DeleteWith(name string, join func(b *state.Batch)) error {
	return t.change(func(c *changeSet) error {
		if _, ok := t.Get(name); !ok {
			return fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		c.gone, c.join = append(c.gone, name), join
		return nil
	})
}

// ForbiddenRead is the bit of reading, the one that the protocol knows: Apache numbers the
// bits as those of a topic's permission.
const ForbiddenRead = 1 << 2

// ForbidReading says whether a group is forbidden to read a topic.
func (t *Table) ForbidReading(group, topic string, forbidden bool) error {
	bits := t.Forbidden(group, topic) &^ ForbiddenRead
	if forbidden {
		bits |= ForbiddenRead
	}
	return t.Forbid(group, topic, bits)
}

// Forbidden returns the bits that a group is forbidden in a topic.
func (t *Table) Forbidden(group, topic string) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.forbidden[group][topic]
}

// Forbid sets what a group is forbidden in a topic; 0 forbids nothing.
func (t *Table) Forbid(group, topic string, bits int32) error {
	return t.change(func(c *changeSet) error {
		if _, ok := t.Get(group); !ok {
			return fmt.Errorf("%w: %s", ErrNotFound, group)
		}
		c.forbid = []forbid{{group, topic, bits}}
		return nil
	})
}

// All returns every group, sorted by name.
func (t *Table) All() []*Config {
	var list []*Config
	t.configs.Range(func(_, c any) bool {
		list = append(list, c.(*Config))
		return true
	})
	slices.SortFunc(list, func(a, b *Config) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Version returns the current data version, which tells apart two states of the table.
func (t *Table) Version() remoting.DataVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.version
}

// changeSet is what one change does.
type changeSet struct {
	gone    []string // before put
	put     []*Config
	forbid  []forbid
	version *remoting.DataVersion // nil = the next one
	join    func(b *state.Batch)
}

type forbid struct {
	group, topic string
	bits         int32
}

// change collects one change with f, commits it, publishes it and tells about it.
func (t *Table) change(f func(*changeSet) error) error {
	t.changing.Lock()
	var c changeSet
	err := f(&c)
	if err != nil || len(c.put)+len(c.gone)+len(c.forbid) == 0 {
		t.changing.Unlock()
		return err
	}
	version := dataversion.Next(t.Version())
	if c.version != nil {
		version = *c.version
	}
	if err := t.commit(&c, version); err != nil {
		t.changing.Unlock()
		return err
	}
	changed := t.publish(&c, version)
	t.changing.Unlock()
	if t.o.Events.Changed != nil {
		t.o.Events.Changed(changed)
	}
	return nil
}

// publish makes a committed change visible. What is gone and put again in one change is
// replaced and never missing.
func (t *Table) publish(c *changeSet, version remoting.DataVersion) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.version = version
	put := make(map[string]bool, len(c.put))
	for _, cfg := range c.put {
		t.configs.Store(cfg.Name, cfg)
		put[cfg.Name] = true
		changed = append(changed, cfg.Name)
	}
	for _, name := range c.gone {
		delete(t.mu.forbidden, name)
		if !put[name] {
			t.configs.Delete(name)
			changed = append(changed, name)
		}
	}
	for _, f := range c.forbid {
		t.setForbidden(f.group, f.topic, f.bits)
		changed = append(changed, f.group)
	}
	return changed
}

// setForbidden changes the map; mu is held.
func (t *Table) setForbidden(group, topic string, bits int32) {
	topics := t.mu.forbidden[group]
	if bits == 0 {
		delete(topics, topic)
		if len(topics) == 0 {
			delete(t.mu.forbidden, group)
		}
		return
	}
	if topics == nil {
		topics = make(map[string]int32)
		t.mu.forbidden[group] = topics
	}
	topics[topic] = bits
}

// maxSteps and maxQueues keep a hostile configuration from costing memory.
const (
	maxSteps  = 1024
	maxQueues = 65535
)

func check(c *Config) error {
	switch {
	case c.RetryQueues < 0 || c.RetryQueues > maxQueues:
		return fmt.Errorf("%w: retryQueueNums %d is not in the range 0..%d", ErrIllegal, c.RetryQueues, maxQueues)
	case c.RetryMaxTimes < -1:
		return fmt.Errorf("%w: retryMaxTimes %d is below -1", ErrIllegal, c.RetryMaxTimes)
	case len(c.Retry.Next) > maxSteps:
		return fmt.Errorf("%w: customizedRetryPolicy.next has %d steps, the limit is %d", ErrIllegal, len(c.Retry.Next), maxSteps)
	case c.Retry.Initial < 0 || c.Retry.Max < 0 || c.Retry.Multiplier < 0:
		return fmt.Errorf("%w: exponentialRetryPolicy has a negative number", ErrIllegal)
	}
	for _, ms := range c.Retry.Next {
		if ms < 0 {
			return fmt.Errorf("%w: customizedRetryPolicy.next has a negative number", ErrIllegal)
		}
	}
	return nil
}
