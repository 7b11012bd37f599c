package topic

import (
	"fmt"
	"log/slog"
	"math"
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

// Table is the set of all topics of this broker. Get is lock-free.
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
		version remoting.DataVersion
		graves  map[string]int64 // deleted topic → end of the log at that moment
	}
}

// Open returns the table with what was stored, and the system topics.
func Open(o Options) (*Table, error) {
	if o.LogEnd == nil {
		o.LogEnd = func() int64 { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	events := o.Events
	o.Events = Events{} // nobody is told of what was there from the start
	t := &Table{o: o}
	t.mu.graves = make(map[string]int64)
	t.mu.version = remoting.DataVersion{Timestamp: time.Now().UnixMilli()}
	if err := t.load(); err != nil {
		return nil, err
	}
	if err := t.addSystemTopics(); err != nil {
		return nil, err
	}
	t.o.Events = events
	return t, nil
}

func (t *Table) addSystemTopics() error {
	return t.change(func(c *changeSet) error {
		for _, cfg := range systemTopics(t.o.Config.Get()) {
			if _, ok := t.Get(cfg.Name); !ok {
				t.put(c, cfg, nil)
			}
		}
		return nil
	})
}

// Get returns the topic as it is now. A light queue, which messages get into beside their
// own, is a topic of one queue that stands in no table.
func (t *Table) Get(name string) (*Config, bool) {
	c, ok := t.configs.Load(name)
	if !ok {
		return light(name)
	}
	return c.(*Config), true
}

func light(name string) (*Config, bool) {
	if !names.IsLight(name) || names.CheckLight(name) != nil {
		return nil, false
	}
	return &Config{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: PermRead | PermWrite, FilterType: SingleTag}, true
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

// Version returns the current data version, which tells apart two states of the table.
func (t *Table) Version() remoting.DataVersion {
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
	if c, ok := t.Get(name); ok { // created since the first look
		return c.Birth
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
	return t.change(func(c *changeSet) error {
		old, exists := t.Get(cfg.Name)
		next := cfg.Clone()
		var current map[string]string
		if exists {
			current = old.Attributes
		}
		attributes, err := config.AlterAttributes(!exists, config.TopicAttributes, current, cfg.Attributes)
		if err != nil {
			return err
		}
		if attributes["message.type"] == "MIXED" && !t.o.Config.Get().EnableMixedMessageType {
			return ErrMixed
		}
		next.Attributes = attributes
		t.put(c, next, old)
		return nil
	})
}

// Delete removes a topic and leaves its grave. What hangs on the topic in other tables
// is removed by the use case in admin, in the same batch: DeleteWith.
func (t *Table) Delete(name string) error { return t.DeleteWith([]string{name}, nil) }

// DeleteWith removes topics, the first of which must exist, and leaves their graves. join
// adds what has to go with them to the batch that does it.
func (t *Table) DeleteWith(names []string, join func(b *state.Batch)) error {
	return t.change(func(c *changeSet) error {
		if _, ok := t.Get(names[0]); !ok {
			return fmt.Errorf("%w: %s", ErrNotFound, names[0])
		}
		c.graves, c.join = make(map[string]int64, len(names)), join
		for _, name := range names {
			if _, ok := t.Get(name); ok {
				c.graves[name] = t.o.LogEnd()
			}
		}
		return nil
	})
}

// Buried tells whether a topic of this name was deleted and none lives now.
func (t *Table) Buried(name string) bool { return t.Birth(name) == math.MaxInt64 }

// IfAbsent runs f unless a topic of this name exists; none is created meanwhile. f must not
// change topics.
func (t *Table) IfAbsent(name string, f func() error) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	if _, ok := t.Get(name); ok {
		return nil
	}
	return f()
}

// Clamp brings births back to the recovered end of the log (P4) and returns how many it
// moved. A topic that is created again is born where the log's next record goes; a crash
// may take the records before that place, which were still being written, and the
// topic's first messages then lie before the birth that was stored.
func (t *Table) Clamp(end int64) (moved int, err error) {
	err = t.change(func(c *changeSet) error {
		for _, old := range t.All() {
			if old.Birth > end {
				next := old.Clone()
				next.Birth = end
				c.put = append(c.put, next)
			}
		}
		moved = len(c.put)
		return nil
	})
	return moved, err
}

// changeSet is what one change does.
type changeSet struct {
	put       []*Config
	graves    map[string]int64
	forgotten []string              // gone without a grave
	version   *remoting.DataVersion // nil = the next one
	join      func(b *state.Batch)
}

// change collects one change with f, commits it, publishes it and tells about it.
func (t *Table) change(f func(*changeSet) error) error {
	t.changing.Lock()
	var c changeSet
	err := f(&c)
	if err != nil || len(c.put)+len(c.graves)+len(c.forgotten) == 0 {
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

// publish makes a committed change visible. A grave is dug before the topic goes, and
// filled after the next one stands, so Birth never sees a name with neither.
func (t *Table) publish(c *changeSet, version remoting.DataVersion) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.version = version
	for name, end := range c.graves {
		t.mu.graves[name] = end
		t.configs.Delete(name)
		changed = append(changed, name)
	}
	for _, name := range c.forgotten {
		t.configs.Delete(name)
		changed = append(changed, name)
	}
	for _, cfg := range c.put {
		t.configs.Store(cfg.Name, cfg)
		delete(t.mu.graves, cfg.Name)
		changed = append(changed, cfg.Name)
	}
	return changed
}

// put adds next, in the place of old, to the change; old is nil for a new topic.
func (t *Table) put(c *changeSet, next, old *Config) {
	if next.FilterType == "" {
		next.FilterType = SingleTag
	}
	if old != nil {
		next.Birth = old.Birth
	} else {
		next.Birth = 0
		t.mu.Lock()
		if _, dead := t.mu.graves[next.Name]; dead {
			next.Birth = t.o.LogEnd()
		}
		t.mu.Unlock()
	}
	c.put = append(c.put, next)
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
