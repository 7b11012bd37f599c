package topic

import (
	"fmt"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// CreateForSend returns the topic that a message is being sent to and creates it if need
// be and allowed: after defaultTopic, whose permission must have the inherit bit, with as
// many queues as the sender proposes but no more than the template has. created tells
// whether this call did it; then the answer to the sender waits until the name servers
// know (register.Announce).
func (t *Table) CreateForSend(name, defaultTopic string, queues, sysFlag int32) (cfg *Config, created bool, err error) {
	if c, ok := t.Get(name); ok {
		return c, false, nil
	}
	err = t.change(func(c *changeSet) error {
		var ok bool
		if cfg, ok = t.Get(name); ok {
			return nil
		}
		template, ok := t.Get(defaultTopic)
		if ok && defaultTopic == names.AutoCreate && !t.o.Config.Get().AutoCreateTopicEnable {
			ok = false
		}
		if !ok {
			return fmt.Errorf("%w: %s", ErrNoTemplate, defaultTopic)
		}
		if !template.Inherits() {
			return fmt.Errorf("%w: %s has permission %d", ErrNoTemplate, defaultTopic, template.Perm)
		}
		n := max(0, min(queues, template.WriteQueues))
		cfg = &Config{Name: name, ReadQueues: n, WriteQueues: n, Perm: template.Perm &^ PermInherit,
			SysFlag: sysFlag, FilterType: template.FilterType}
		created = true
		t.put(c, cfg, nil)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return cfg, created, nil
}

// CreateInternal returns the topic of this name and creates it if need be with the given
// queues and permission: retry topics, dead-letter topics and other topics of the
// broker's own. No template is asked. A topic
// that exists becomes an order topic if order asks for it.
func (t *Table) CreateInternal(name string, queues, perm int32, order bool, sysFlag int32) (cfg *Config, created bool, err error) {
	if c, ok := t.Get(name); ok && (c.Order || !order) {
		return c, false, nil
	}
	err = t.change(func(c *changeSet) error {
		old, ok := t.Get(name)
		if ok && (old.Order || !order) {
			cfg = old
			return nil
		}
		if ok {
			cfg = old.Clone()
			cfg.Order = true
		} else {
			// The name may lie in the buffer of the message that is to go there.
			cfg = &Config{Name: strings.Clone(name), ReadQueues: queues, WriteQueues: queues, Perm: perm, SysFlag: sysFlag,
				Order: order, FilterType: SingleTag}
			created = true
		}
		t.put(c, cfg, old)
		return nil
	})
	return cfg, created, err
}

// MarkOrder makes a topic that exists an order topic.
func (t *Table) MarkOrder(name string) (cfg *Config, changed bool, err error) {
	err = t.change(func(c *changeSet) error {
		old, ok := t.Get(name)
		if !ok || old.Order {
			cfg = old
			return nil
		}
		cfg, changed = old.Clone(), true
		cfg.Order = true
		t.put(c, cfg, old)
		return nil
	})
	return cfg, changed, err
}
