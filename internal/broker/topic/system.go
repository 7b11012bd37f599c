package topic

import (
	"slices"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// scheduleQueues is one queue for each delay level of Apache's table.
const scheduleQueues = 18

// systemTopics are the topics that exist from the first start: those that clients and
// tools ask for or that Apache's broker needs when it opens the same store. What Apache
// creates beyond them stands in docs/differences.md.
func systemTopics(c *config.Broker) []*Config {
	one := func(name string) *Config {
		return &Config{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: PermRead | PermWrite, FilterType: SingleTag}
	}
	inherited := func(name string, queues int32, open bool) *Config {
		t := one(name)
		t.ReadQueues, t.WriteQueues, t.Perm = queues, queues, PermInherit
		if open {
			t.Perm |= PermRead | PermWrite
		}
		return t
	}
	schedule := one(names.Schedule)
	schedule.ReadQueues, schedule.WriteQueues = scheduleQueues, scheduleQueues
	bench := one(names.Benchmark)
	bench.ReadQueues, bench.WriteQueues = 1024, 1024
	list := []*Config{
		one(names.SelfTest),
		bench,
		inherited(c.BrokerClusterName, 16, c.ClusterTopicEnable),
		inherited(c.BrokerName, 1, c.BrokerTopicEnable),
		one(names.OffsetMoved),
		schedule,
		one(names.Reply(c.BrokerClusterName)),
		one(names.Half),
		one(names.OpHalf),
		one(names.WheelTimer),
	}
	if c.TraceTopicEnable {
		list = append(list, one(c.MsgTraceTopicName))
	}
	if c.AutoCreateTopicEnable {
		list = append(list, inherited(names.AutoCreate, c.DefaultTopicQueueNums, true))
	}
	return list
}

// Reshape brings the topics that others are made after in line with the settings that have
// changed while the broker runs, and has all topics told anew where such a setting counts
// for each of them. A start leaves them as they are stored, as Apache's does.
func (t *Table) Reshape(changed func(setting string) bool) error {
	settings := t.o.Config.Get()
	governs := map[string]string{names.AutoCreate: "defaultTopicQueueNums", settings.BrokerClusterName: "clusterTopicEnable", settings.BrokerName: "brokerTopicEnable"}
	return t.change(func(c *changeSet) error {
		for _, cfg := range systemTopics(settings) {
			old, ok := t.Get(cfg.Name)
			switch {
			case !ok: // autoCreateTopicEnable
				t.put(c, cfg, nil)
			case changed(governs[cfg.Name]):
				next := old.Clone()
				next.ReadQueues, next.WriteQueues, next.Perm = cfg.ReadQueues, cfg.WriteQueues, cfg.Perm
				t.put(c, next, old)
			}
		}
		if changed("brokerPermission") { // is part of what name servers are told of each topic
			reshaped := c.put
			for _, old := range t.All() {
				if !slices.ContainsFunc(reshaped, func(p *Config) bool { return p.Name == old.Name }) {
					t.put(c, old.Clone(), old)
				}
			}
		}
		return nil
	})
}

// IsSystem tells whether a topic belongs to the broker itself and may be neither changed
// nor deleted by a user.
func (t *Table) IsSystem(name string) bool {
	c := t.o.Config.Get()
	return names.IsSystemTopic(name) || name == c.BrokerClusterName || name == c.BrokerName ||
		name == names.Reply(c.BrokerClusterName)
}
