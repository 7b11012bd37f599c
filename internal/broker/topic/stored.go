package topic

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/dataversion"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// The keys of the keyspace state.Topics; docs/formats/state.md draws them. A value with
// many fields is JSON: it is written when somebody changes a topic and read at start.
const (
	keyConfig  = 'c' // + name → stored
	keyGrave   = 'g' // + name → end of the log when the topic was deleted, 8 bytes
	keyVersion = 'v' // → state, timestamp, counter, 8 bytes each
)

type stored struct {
	ReadQueues  int32             `json:"r"`
	WriteQueues int32             `json:"w"`
	Perm        int32             `json:"p"`
	FilterType  string            `json:"f,omitempty"`
	SysFlag     int32             `json:"s,omitempty"`
	Order       bool              `json:"o,omitempty"`
	Attributes  map[string]string `json:"a,omitempty"`
	Birth       int64             `json:"b,omitempty"`
}

func key(kind byte, name string) []byte { return append([]byte{kind}, name...) }

func encodeConfig(c *Config) []byte {
	b, err := json.Marshal(stored{c.ReadQueues, c.WriteQueues, c.Perm, c.FilterType, c.SysFlag, c.Order, c.Attributes, c.Birth})
	if err != nil {
		panic(err) // numbers, strings and a map of strings always marshal
	}
	return b
}

func decodeConfig(name string, b []byte) (*Config, error) {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("stored topic %s: %w", name, err)
	}
	return &Config{name, s.ReadQueues, s.WriteQueues, s.Perm, s.FilterType, s.SysFlag, s.Order, s.Attributes, s.Birth}, nil
}

// load fills the table from the database.
func (t *Table) load() error {
	if t.o.State == nil {
		return nil
	}
	return t.o.State.Scan(state.Topics, nil, func(k, v []byte) error {
		if len(k) == 0 {
			return nil
		}
		name := string(k[1:])
		switch k[0] {
		case keyConfig:
			c, err := decodeConfig(name, v)
			if err != nil {
				return err
			}
			t.configs.Store(name, c)
		case keyGrave:
			if len(v) != 8 {
				return fmt.Errorf("stored grave of topic %s has %d bytes, not 8", name, len(v))
			}
			t.mu.graves[name] = int64(binary.BigEndian.Uint64(v))
		case keyVersion:
			var err error
			if t.mu.version, err = dataversion.Decode(v); err != nil {
				return fmt.Errorf("topics: %w", err)
			}
		}
		return nil
	})
}

// commit writes what a change has done. It waits until that is as durable as the flush
// policy asks.
func (t *Table) commit(c *changeSet, version remoting.DataVersion) error {
	if t.o.State == nil {
		if c.join != nil {
			c.join(nil)
		}
		return nil
	}
	b := t.o.State.NewBatch()
	for _, cfg := range c.put {
		b.Put(state.Topics, key(keyConfig, cfg.Name), encodeConfig(cfg))
		b.Delete(state.Topics, key(keyGrave, cfg.Name))
	}
	for name, end := range c.graves {
		b.Delete(state.Topics, key(keyConfig, name))
		b.Put(state.Topics, key(keyGrave, name), binary.BigEndian.AppendUint64(nil, uint64(end)))
	}
	for _, name := range c.forgotten {
		b.Delete(state.Topics, key(keyConfig, name))
	}
	if c.join != nil {
		c.join(b)
	}
	b.Put(state.Topics, []byte{keyVersion}, dataversion.Encode(version))
	if err := t.o.State.Commit(b); err != nil {
		return fmt.Errorf("store topics: %w", err)
	}
	return nil
}
