package group

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/dataversion"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// The keys of the keyspace state.Groups; docs/formats/state.md draws them. Groups are
// JSON: they are written when somebody changes one and read at start.
const (
	keyConfig  = 'c' // + name → Config
	keyForbid  = 'f' // + group, 0, topic → bits, 4 bytes
	keyVersion = 'v' // → state, timestamp, counter, 8 bytes each
)

func key(kind byte, parts ...string) []byte {
	b := []byte{kind}
	for i, p := range parts {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, p...)
	}
	return b
}

// load fills the table from the database.
func (t *Table) load() error {
	if t.o.State == nil {
		return nil
	}
	return t.o.State.Scan(state.Groups, nil, func(k, v []byte) error {
		if len(k) == 0 {
			return nil
		}
		switch name := string(k[1:]); k[0] {
		case keyConfig:
			c := &Config{}
			if err := json.Unmarshal(v, c); err != nil {
				return fmt.Errorf("stored group %s: %w", name, err)
			}
			c.Name = name
			t.configs.Store(name, c)
		case keyForbid:
			group, topic, ok := bytes.Cut(k[1:], []byte{0})
			if !ok || len(v) != 4 {
				return fmt.Errorf("stored ban %q is malformed", name)
			}
			t.setForbidden(string(group), string(topic), int32(binary.BigEndian.Uint32(v)))
		case keyVersion:
			var err error
			if t.mu.version, err = dataversion.Decode(v); err != nil {
				return fmt.Errorf("groups: %w", err)
			}
		}
		return nil
	})
}

// commit writes what a change does. It waits until that is as durable as the flush
// policy asks.
func (t *Table) commit(c *changeSet, version remoting.DataVersion) error {
	if t.o.State == nil {
		if c.join != nil {
			c.join(nil)
		}
		return nil
	}
	b := t.o.State.NewBatch()
	for _, name := range c.gone {
		b.Delete(state.Groups, key(keyConfig, name))
		b.DeletePrefix(state.Groups, key(keyForbid, name, ""))
	}
	for _, cfg := range c.put {
		text, err := json.Marshal(cfg)
		if err != nil {
			b.Discard()
			return fmt.Errorf("store group %s: %w", cfg.Name, err)
		}
		b.Put(state.Groups, key(keyConfig, cfg.Name), text)
	}
	for _, f := range c.forbid {
		if f.bits == 0 {
			b.Delete(state.Groups, key(keyForbid, f.group, f.topic))
		} else {
			b.Put(state.Groups, key(keyForbid, f.group, f.topic), binary.BigEndian.AppendUint32(nil, uint32(f.bits)))
		}
	}
	if c.join != nil {
		c.join(b)
	}
	b.Put(state.Groups, []byte{keyVersion}, dataversion.Encode(version))
	if err := t.o.State.Commit(b); err != nil {
		return fmt.Errorf("store groups: %w", err)
	}
	return nil
}
