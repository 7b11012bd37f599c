package topic

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Remoting is the topic in the protocol's form. The caller must not change its map.
func (c *Config) Remoting() remoting.TopicConfig {
	return remoting.TopicConfig{
		TopicName: c.Name, ReadQueueNums: c.ReadQueues, WriteQueueNums: c.WriteQueues, Perm: c.Perm,
		TopicFilterType: c.FilterType, TopicSysFlag: c.SysFlag, Order: c.Order, Attributes: c.Attributes,
	}
}

// FromRemoting is the opposite of Remoting.
func FromRemoting(c *remoting.TopicConfig) *Config {
	n := &Config{
		Name: c.TopicName, ReadQueues: c.ReadQueueNums, WriteQueues: c.WriteQueueNums, Perm: c.Perm,
		FilterType: c.TopicFilterType, SysFlag: c.TopicSysFlag, Order: c.Order, Attributes: c.Attributes,
	}
	if n.FilterType == "" {
		n.FilterType = SingleTag
	}
	return n
}

// Remoting is the whole table in the protocol's form: part of a registration, answer to
// request 21, and Apache's topics.json.
func (t *Table) Remoting() remoting.TopicConfigTable {
	out := remoting.TopicConfigTable{DataVersion: t.Version(), TopicConfigTable: make(map[string]remoting.TopicConfig)}
	for _, c := range t.All() {
		out.TopicConfigTable[c.Name] = c.Remoting()
	}
	return out
}

// Export is the text of topics.json.
func (t *Table) Export() ([]byte, error) {
	table := t.Remoting()
	return append(remoting.Marshal(&table), '\n'), nil
}

// Import replaces the table by that of a topics.json. What is not in it is gone, but
// leaves no grave: a text that is older than the log must not hide messages.
func (t *Table) Import(text []byte) error {
	var in remoting.TopicConfigTable
	if err := remoting.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("read topics: %w", err)
	}
	if len(in.TopicConfigTable) == 0 {
		return errors.New("read topics: there are none")
	}
	err := t.change(func(c *changeSet) error {
		for name := range in.TopicConfigTable {
			r := in.TopicConfigTable[name]
			r.TopicName = name
			cfg := FromRemoting(&r)
			if err := checkImported(cfg); err != nil {
				t.o.Log.Warn("a topic of topics.json is left out", "topic", name, "err", err)
				continue
			}
			old, _ := t.Get(name)
			t.put(c, cfg, old)
		}
		if len(c.put) == 0 {
			return errors.New("read topics: none of them is usable")
		}
		for _, old := range t.All() {
			if _, stays := in.TopicConfigTable[old.Name]; !stays {
				c.forgotten = append(c.forgotten, old.Name)
			}
		}
		c.version = &in.DataVersion
		return nil
	})
	if err != nil {
		return err
	}
	return t.addSystemTopics()
}

// checkImported refuses what would hurt; names that Apache itself has made are longer and
// odder than what a user may choose.
func checkImported(c *Config) error {
	if c.Name == "" || len(c.Name) > names.MaxRetryTopic {
		return fmt.Errorf("%w: %d bytes", ErrIllegalName, len(c.Name))
	}
	for i := range len(c.Name) {
		if c.Name[i] <= ' ' || c.Name[i] == '/' || c.Name[i] == 0x7f {
			return fmt.Errorf("%w: it has the byte 0x%02x", ErrIllegalName, c.Name[i])
		}
	}
	return checkNumbers(c)
}
