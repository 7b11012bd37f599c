package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// broker is what there is one of.
func (p *page) broker(b *broker.Broker) {
	p.single("rocketmq_broker_permission", gauge, "2 may be written, 4 may be read.", int64(b.Config.Get().BrokerPermission))
	p.single("rocketmq_topic_number", gauge, "Topics.", int64(len(b.Topics.All())))
	p.single("rocketmq_consumer_group_number", gauge, "Consumer groups.", int64(len(b.Groups.All())))
	disk := []string{"storage_type", "local", "storage_medium", "disk"}
	p.single("rocketmq_storage_size", gauge, "Bytes of log that hold messages.", b.Store.LogMax()-b.Store.LogMin(), disk...)
	p.single("rocketmq_storage_dispatch_behind_bytes", gauge, "Bytes of log that readers can not see yet.", b.Store.LogEnd()-b.Store.LogMax(), disk...)
	if u := b.Store.DiskUsage(); u.Known {
		p.single("bolide_disk_free_bytes", gauge, "Room on the disk of the store.", u.Free)
		p.single("bolide_disk_size_bytes", gauge, "Size of the disk of the store.", u.Total)
	}
}

// traffic is what came in and went out since the start.
func (p *page) traffic(b *broker.Broker) {
	in := func(name, help, count string) {
		p.family(name, counter, help)
		for _, t := range b.Admin.Counters.Totals(count) {
			p.sample(name, t.Total, "topic", t.Key, "is_system", truth(names.IsSystemTopic(t.Key)))
		}
	}
	in("rocketmq_messages_in_total", "Messages stored.", admin.TopicPutNums)
	in("rocketmq_throughput_in_total", "Bytes stored.", admin.TopicPutSize)
	out := func(name, help, count string) {
		p.family(name, counter, help)
		for _, t := range b.Admin.Counters.Totals(count) {
			one := func(n int64, retry bool) {
				p.sample(name, n, "topic", t.Key, "consumer_group", t.Group, "is_retry", truth(retry), "is_system", systemPart(t.Group, t.Key))
			}
			one(t.Total-t.Again, names.IsRetry(t.Key))
			if t.Again > 0 {
				one(t.Again, true)
			}
		}
	}
	out("rocketmq_messages_out_total", "Messages handed out.", admin.GroupGetNums)
	out("rocketmq_throughput_out_total", "Bytes handed out to pulls.", admin.GroupGetSize)
	p.family("bolide_missed_messages_total", counter, "Messages whose log file was deleted before the group came to them.")
	for _, m := range b.Missed() {
		p.sample("bolide_missed_messages_total", m.Messages, "topic", m.Topic, "consumer_group", m.Group)
	}
}

// modes are Apache's words for how a group consumes.
var modes = map[string]string{clients.ConsumePassively: "push", clients.ConsumeActively: "pull", clients.ConsumePop: "pop"}

// connections counts clients of one kind.
func (p *page) connections(b *broker.Broker) {
	type kind struct{ group, language, version, mode string }
	producers, consumers := make(map[kind]int64), make(map[kind]int64)
	described := func(c *clients.Client) kind {
		return kind{language: strings.ToLower(remoting.Language(c.Language).String()), version: strconv.Itoa(int(c.Version))}
	}
	for _, members := range b.Clients.AllProducers() {
		for i := range members {
			producers[described(&members[i].Client)]++
		}
	}
	for _, name := range b.Clients.ConsumerGroups() {
		g, ok := b.Clients.Group(name)
		if !ok {
			continue
		}
		for i := range g.Members {
			k := described(&g.Members[i])
			k.group, k.mode = name, modes[g.Type]
			consumers[k]++
		}
	}
	sorted := func(of map[kind]int64) (kinds []kind) {
		for k := range of {
			kinds = append(kinds, k)
		}
		slices.SortFunc(kinds, func(x, y kind) int {
			return cmp.Or(cmp.Compare(x.group, y.group), cmp.Compare(x.language, y.language), cmp.Compare(x.version, y.version), cmp.Compare(x.mode, y.mode))
		})
		return kinds
	}
	p.family("rocketmq_producer_connections", gauge, "Producers that are connected; one in two groups counts twice.")
	for _, k := range sorted(producers) {
		p.sample("rocketmq_producer_connections", producers[k], "language", k.language, "version", k.version)
	}
	p.family("rocketmq_consumer_connections", gauge, "Consumers that are connected.")
	for _, k := range sorted(consumers) {
		p.sample("rocketmq_consumer_connections", consumers[k], "consumer_group", k.group, "language", k.language, "version", k.version,
			"consume_mode", k.mode, "is_system", truth(names.IsSystemGroup(k.group)))
	}
}
