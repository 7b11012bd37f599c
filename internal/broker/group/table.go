package group

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Options is what a table needs. Only Config is required.
type Options struct {
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

// Table is the set of all subscription groups of this broker. Get is lock-free; changes
// are made one after the other under mu.
type Table struct {
	o       Options
	configs sync.Map // name → *Config
	mu      struct {
		sync.Mutex
		version   Version
		forbidden map[string]map[string]int32 // group → topic → bits
	}
}

// Version tells apart two states of a table; it is what Apache calls data version.
type Version struct {
	State     int64
	Timestamp int64
	Counter   int64
}

// Open returns the table with what was stored, and the system groups.
func Open(o Options) (*Table, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o}
	t.mu.version = Version{Timestamp: time.Now().UnixMilli()}
	t.mu.forbidden = make(map[string]map[string]int32)
	for _, name := range names.SystemGroups() {
		t.configs.LoadOrStore(name, New(name))
	}
	return t, nil
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
	err := t.change(func() ([]string, error) {
		var ok bool
		if cfg, ok = t.Get(name); ok {
			return nil, nil
		}
		cfg = New(name)
		t.configs.Store(name, cfg)
		return []string{name}, nil
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
	return t.change(func() (changed []string, err error) {
		old, exists := t.Get(cfg.Name)
		var current map[string]string
		if exists {
			current = old.Attributes
		}
		next := cfg.Clone()
		next.Attributes, err = config.AlterAttributes(!exists, config.GroupAttributes, current, cfg.Attributes)
		if err != nil {
			return nil, err
		}
		t.configs.Store(next.Name, next)
		return []string{next.Name}, nil
	})
}

// Delete removes a group. Its offsets and retry topic are removed by the use case in
// admin.
func (t *Table) Delete(name string) error {
	return t.change(func() ([]string, error) {
		if _, ok := t.configs.LoadAndDelete(name); !ok {
			return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		delete(t.mu.forbidden, name)
		return []string{name}, nil
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

// Version returns the current data version.
func (t *Table) Version() Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.version
}

func (t *Table) change(f func() (changed []string, err error)) error {
	t.mu.Lock()
	changed, err := f()
	if err == nil && len(changed) > 0 {
		t.mu.version.Counter++
		t.mu.version.Timestamp = max(time.Now().UnixMilli(), t.mu.version.Timestamp)
	}
	t.mu.Unlock()
	if err == nil && len(changed) > 0 && t.o.Events.Changed != nil {
		t.o.Events.Changed(changed)
	}
	return err
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
