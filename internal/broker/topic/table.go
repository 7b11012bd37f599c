package topic

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Options is what a table needs. Only Config is required.
type Options struct {
	Config *config.Live[config.Broker]
	// LogEnd is where the log ends now: the grave of a topic deleted now, the birth of
	// one that is created again. nil means 0.
	LogEnd func() int64
	Events Events
	Log    *slog.Logger
}

// Events tells others what happened, after it is durable and visible.
type Events struct {
	// Changed names topics that were created, changed or deleted. It is called under no
	// lock of the table and must not block.
	Changed func(names []string)
}

// Table is the set of all topics of this broker. Get is lock-free; changes are made one
// after the other under mu.
type Table struct {
	o       Options
	configs sync.Map // name → *Config
	mu      struct {
		sync.Mutex
		version Version
		graves  map[string]int64 // deleted topic → end of the log at that moment
		count   int
	}
}

// Version tells apart two states of a table; it is what Apache calls data version.
type Version struct {
	State     int64
	Timestamp int64
	Counter   int64
}

// Open returns the table with what was stored, and the system topics.
func Open(o Options) (*Table, error) {
	if o.LogEnd == nil {
		o.LogEnd = func() int64 { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o}
	t.mu.graves = make(map[string]int64)
	t.mu.version = Version{Timestamp: time.Now().UnixMilli()}
	for _, c := range systemTopics(o.Config.Get()) {
		if _, ok := t.Get(c.Name); !ok {
			t.configs.Store(c.Name, c)
			t.mu.count++
		}
	}
	return t, nil
}

// Get returns the topic as it is now.
func (t *Table) Get(name string) (*Config, bool) {
	c, ok := t.configs.Load(name)
	if !ok {
		return nil, false
	}
	return c.(*Config), true
}

// All returns every topic, sorted by name.
func (t *Table) All() []*Config {
	var list []*Config
	t.configs.Range(func(_, c any) bool {
		list = append(list, c.(*Config))
		return true
	})
	sortByName(list)
	return list
}

// Version returns the current data version.
func (t *Table) Version() Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.version
}

// Birth is where the life of the topic that now has this name begins in the log: older
// records of the name are not dispatched. For a deleted topic that is never; for a name
// that was never deleted it is the log's beginning.
func (t *Table) Birth(name string) int64 {
	if c, ok := t.Get(name); ok {
		return c.Birth
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, dead := t.mu.graves[name]; dead {
		return math.MaxInt64
	}
	return 0
}

// Put creates or changes a topic. cfg.Attributes is a change: names with a sign in
// front ("+message.type"). The caller keeps cfg.
func (t *Table) Put(cfg *Config) error {
	if err := names.CheckTopic(cfg.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrIllegalName, err)
	}
	if t.IsSystem(cfg.Name) && t.o.Config.Get().ValidateSystemTopicWhenUpdate {
		return fmt.Errorf("%w: %s", ErrSystemTopic, cfg.Name)
	}
	if err := checkNumbers(cfg); err != nil {
		return err
	}
	return t.change(func() (changed []string, err error) {
		old, exists := t.Get(cfg.Name)
		next := cfg.Clone()
		var current map[string]string
		if exists {
			current = old.Attributes
		}
		next.Attributes, err = config.AlterAttributes(!exists, config.TopicAttributes, current, cfg.Attributes)
		if err != nil {
			return nil, err
		}
		if next.Attributes["message.type"] == "MIXED" && !t.o.Config.Get().EnableMixedMessageType {
			return nil, ErrMixed
		}
		t.store(next, old)
		return []string{cfg.Name}, nil
	})
}

// Delete removes a topic and leaves its grave.
func (t *Table) Delete(name string) error {
	return t.change(func() ([]string, error) {
		if _, ok := t.Get(name); !ok {
			return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		t.configs.Delete(name)
		t.mu.count--
		t.mu.graves[name] = t.o.LogEnd()
		return []string{name}, nil
	})
}

// change runs one change under the lock, counts it in the data version and tells about
// it when the lock is gone.
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

// store publishes next in the place of old, which is nil for a new topic; mu is held.
func (t *Table) store(next, old *Config) {
	if next.FilterType == "" {
		next.FilterType = SingleTag
	}
	if old != nil {
		next.Birth = old.Birth
	} else {
		next.Birth = 0
		if _, dead := t.mu.graves[next.Name]; dead {
			next.Birth = t.o.LogEnd()
			delete(t.mu.graves, next.Name)
		}
		t.mu.count++
	}
	t.configs.Store(next.Name, next)
}

// maxQueues is far above what a broker can use and keeps a hostile number from becoming
// a hundred thousand folders.
const maxQueues = 65535

func checkNumbers(c *Config) error {
	switch {
	case c.ReadQueues < 0 || c.ReadQueues > maxQueues:
		return fmt.Errorf("%w: readQueueNums %d is not in the range 0..%d", ErrIllegal, c.ReadQueues, maxQueues)
	case c.WriteQueues < 0 || c.WriteQueues > maxQueues:
		return fmt.Errorf("%w: writeQueueNums %d is not in the range 0..%d", ErrIllegal, c.WriteQueues, maxQueues)
	case c.Perm < 0 || c.Perm > 15:
		return fmt.Errorf("%w: perm %d is not in the range 0..15", ErrIllegal, c.Perm)
	}
	return nil
}
