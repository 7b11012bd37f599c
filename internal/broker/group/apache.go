package group

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Remoting is the group in the protocol's form. The caller must not change its maps.
func (c *Config) Remoting() remoting.SubscriptionGroupConfig {
	out := remoting.SubscriptionGroupConfig{
		GroupName: c.Name, ConsumeEnable: c.ConsumeEnable, ConsumeFromMinEnable: c.ConsumeFromMin,
		ConsumeBroadcastEnable: c.ConsumeBroadcast, ConsumeMessageOrderly: c.ConsumeOrderly,
		RetryQueueNums: c.RetryQueues, RetryMaxTimes: c.RetryMaxTimes, BrokerID: c.BrokerID,
		WhichBrokerWhenConsumeSlowly: c.WhichBrokerWhenSlow, NotifyConsumerIDsChangedEnable: c.NotifyConsumersChanged,
		GroupSysFlag: c.SysFlag, ConsumeTimeoutMinute: c.ConsumeTimeoutMinutes, Attributes: c.Attributes,
	}
	out.GroupRetryPolicy.Type = remoting.RetryCustomized
	if c.Retry.Exponential {
		out.GroupRetryPolicy.Type = remoting.RetryExponential
	}
	if len(c.Retry.Next) > 0 {
		out.GroupRetryPolicy.CustomizedRetryPolicy = &remoting.CustomizedRetryPolicy{Next: c.Retry.Next}
	}
	if c.Retry.Initial != 0 || c.Retry.Max != 0 || c.Retry.Multiplier != 0 {
		out.GroupRetryPolicy.ExponentialRetryPolicy = &remoting.ExponentialRetryPolicy{
			Initial: c.Retry.Initial, Max: c.Retry.Max, Multiplier: c.Retry.Multiplier}
	}
	for _, s := range c.Subscriptions {
		out.SubscriptionDataSet = append(out.SubscriptionDataSet, remoting.SimpleSubscriptionData{
			Topic: s.Topic, ExpressionType: s.ExpressionType, Expression: s.Expression, Version: s.Version})
	}
	return out
}

// FromRemoting is the opposite of Remoting.
func FromRemoting(c *remoting.SubscriptionGroupConfig) *Config {
	out := &Config{
		Name: c.GroupName, ConsumeEnable: c.ConsumeEnable, ConsumeFromMin: c.ConsumeFromMinEnable,
		ConsumeBroadcast: c.ConsumeBroadcastEnable, ConsumeOrderly: c.ConsumeMessageOrderly,
		RetryQueues: c.RetryQueueNums, RetryMaxTimes: c.RetryMaxTimes, BrokerID: c.BrokerID,
		WhichBrokerWhenSlow: c.WhichBrokerWhenConsumeSlowly, NotifyConsumersChanged: c.NotifyConsumerIDsChangedEnable,
		SysFlag: c.GroupSysFlag, ConsumeTimeoutMinutes: c.ConsumeTimeoutMinute, Attributes: c.Attributes,
	}
	out.Retry.Exponential = c.GroupRetryPolicy.Type == remoting.RetryExponential
	if p := c.GroupRetryPolicy.CustomizedRetryPolicy; p != nil {
		out.Retry.Next = p.Next
	}
	if p := c.GroupRetryPolicy.ExponentialRetryPolicy; p != nil {
		out.Retry.Initial, out.Retry.Max, out.Retry.Multiplier = p.Initial, p.Max, p.Multiplier
	}
	for _, s := range c.SubscriptionDataSet {
		out.Subscriptions = append(out.Subscriptions, Subscription{
			Topic: s.Topic, ExpressionType: s.ExpressionType, Expression: s.Expression, Version: s.Version})
	}
	return out
}

// Remoting is the whole table in the protocol's form: answer to request 201 and Apache's
// subscriptionGroup.json.
func (t *Table) Remoting() remoting.SubscriptionGroupTable {
	out := remoting.SubscriptionGroupTable{
		DataVersion:            t.Version(),
		ForbiddenTable:         make(map[string]map[string]int64),
		SubscriptionGroupTable: make(map[string]remoting.SubscriptionGroupConfig),
	}
	for _, c := range t.All() {
		out.SubscriptionGroupTable[c.Name] = c.Remoting()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for group, topics := range t.mu.forbidden {
		out.ForbiddenTable[group] = make(map[string]int64, len(topics))
		for topic, bits := range topics {
			out.ForbiddenTable[group][topic] = int64(bits)
		}
	}
	return out
}

// Export is the text of subscriptionGroup.json.
func (t *Table) Export() ([]byte, error) {
	table := t.Remoting()
	return append(remoting.Marshal(&table), '\n'), nil
}

// Import replaces the table by that of a subscriptionGroup.json.
func (t *Table) Import(text []byte) error {
	var in remoting.SubscriptionGroupTable
	if err := remoting.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("read groups: %w", err)
	}
	if len(in.SubscriptionGroupTable) == 0 {
		return errors.New("read groups: there are none")
	}
	err := t.change(func(c *changeSet) error {
		for name := range in.SubscriptionGroupTable {
			r := in.SubscriptionGroupTable[name]
			r.GroupName = name
			cfg := FromRemoting(&r)
			if err := checkImported(cfg); err != nil {
				t.o.Log.Warn("a group of subscriptionGroup.json is left out", "group", name, "err", err)
				continue
			}
			c.put = append(c.put, cfg)
			for topic, bits := range in.ForbiddenTable[name] {
				c.forbid = append(c.forbid, forbid{name, topic, int32(bits)})
			}
		}
		if len(c.put) == 0 {
			return errors.New("read groups: none of them is usable")
		}
		for _, old := range t.All() {
			c.gone = append(c.gone, old.Name) // those that stay are put after it, bans and all
		}
		c.version = &in.DataVersion
		return nil
	})
	if err != nil {
		return err
	}
	return t.addSystemGroups()
}

// checkImported refuses what would hurt.
func checkImported(c *Config) error {
	if c.Name == "" || len(c.Name) > names.MaxRetryTopic {
		return fmt.Errorf("%w: %d bytes", ErrIllegalName, len(c.Name))
	}
	for i := range len(c.Name) {
		if c.Name[i] <= ' ' || c.Name[i] == 0x7f {
			return fmt.Errorf("%w: it has the byte 0x%02x", ErrIllegalName, c.Name[i])
		}
	}
	return check(c)
}
