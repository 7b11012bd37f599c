package topic

import (
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
	if c.AutoCreateTopicEnable {
		list = append(list, inherited(names.AutoCreate, c.DefaultTopicQueueNums, true))
	}
	return list
}

// IsSystem tells whether a topic belongs to the broker itself and may be neither changed
// nor deleted by a user.
func (t *Table) IsSystem(name string) bool {
	c := t.o.Config.Get()
	return names.IsSystemTopic(name) || name == c.BrokerClusterName || name == c.BrokerName ||
		name == names.Reply(c.BrokerClusterName)
}
