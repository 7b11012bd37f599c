package metrics

import (
	"strconv"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// groups is what each group has before it, in its hands and behind it, of each topic that
// it consumes, zeros included.
func (p *page) groups(b *broker.Broker) error {
	list, queues, err := standings(b)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, help string
		value      func(*standing) int64
	}{
		{"rocketmq_consumer_lag_messages", "Messages that a group is not done with.", func(s *standing) int64 { return s.lag }},
		{"rocketmq_consumer_inflight_messages", "Messages that a group has received and is not done with.", func(s *standing) int64 { return s.inFlight }},
		{"rocketmq_consumer_ready_messages", "Messages that a group could receive.", func(s *standing) int64 { return s.ready }},
		{"bolide_consumer_blocked_messages", "Messages that wait for one of their message group to be done.", func(s *standing) int64 { return s.blocked }},
		{"bolide_consumer_delayed_messages", "Messages that a group has given back and that wait for their time.", func(s *standing) int64 { return s.delayed }},
		{"rocketmq_consumer_lag_latency", "Age of the oldest message that a group is not done with, in milliseconds.", func(s *standing) int64 { return s.oldest }},
		{"rocketmq_consumer_queueing_latency", "Age of the oldest message that a group could receive, in milliseconds.", func(s *standing) int64 { return s.oldestReady }},
	} {
		p.family(f.name, gauge, f.help)
		for i := range list {
			s := &list[i]
			p.sample(f.name, f.value(s), "consumer_group", s.group, "topic", s.topic, "is_retry", truth(s.retry),
				"is_system", systemPart(s.group, s.topic))
		}
	}
	p.family("bolide_queue_lag_messages", gauge, "The lag by queue, where there is any.")
	for _, q := range queues {
		p.sample("bolide_queue_lag_messages", q.lag, "consumer_group", q.group, "topic", q.topic, "queue_id", strconv.Itoa(int(q.queue)))
	}
	p.perStanding(b, "rocketmq_send_to_dlq_messages_total", "Messages that went to the dead-letter topic, by the topic that they were sent to.", admin.DLQPutNums, list)
	p.perStanding(b, "rocketmq_pop_revive_retry_messages_total", "Deliveries of POP that lapsed and come again.", admin.PopRetryNums, list, "put_status", "PUT_OK")
	p.deadLetters(b)
	return nil
}

// perStanding is a count of group and topic, zero for those that have none.
func (p *page) perStanding(b *broker.Broker, name, help, count string, list []standing, of ...string) {
	p.family(name, counter, help)
	counted := b.Admin.Counters.Totals(count)
	seen := make(map[admin.Total]bool, len(counted)) // their totals left out
	one := func(group, topic string, total int64) {
		p.sample(name, total, append([]string{"topic", topic, "consumer_group", group, "is_system", systemPart(group, topic)}, of...)...)
		seen[admin.Total{Key: topic, Group: group}] = true
	}
	for _, t := range counted {
		one(t.Group, t.Key, t.Total)
	}
	for i := range list {
		if s := &list[i]; !names.IsRetry(s.topic) && !seen[admin.Total{Key: s.topic, Group: s.group}] {
			one(s.group, s.topic, 0)
		}
	}
}

// deadLetters is how many lie in each group's dead-letter topic, redriven ones included.
func (p *page) deadLetters(b *broker.Broker) {
	const name = "bolide_dead_letters"
	p.family(name, gauge, "Messages in a group's dead-letter topic.")
	for _, g := range b.Groups.All() {
		n := int64(0)
		if t, ok := b.Topics.Get(names.DeadLetter(g.Name)); ok {
			for q := range t.Queues() {
				n += max(0, b.Store.MaxOffset(t.Name, q)-max(0, b.Store.MinOffset(t.Name, q)))
			}
		}
		p.sample(name, n, "consumer_group", g.Name, "is_system", truth(names.IsSystemGroup(g.Name)))
	}
}

func systemPart(group, topic string) string {
	return truth(names.IsSystemTopic(topic) || names.IsSystemGroup(group))
}
