package broker

import (
	"time"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/pull"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// storageEvents are the caller's, and the counts that tools ask for and of what groups missed.
func (b *Broker) storageEvents(o *Options) storage.Events {
	events := o.Events.Storage
	written := events.Written
	events.Written = func(records, bytes int, took time.Duration) {
		b.Admin.Put.Add(int64(records))
		b.Admin.PutBytes.Add(int64(bytes))
		b.Admin.PutTimes.Add(records, took)
		if written != nil {
			written(records, bytes, took)
		}
	}
	deleted := events.SegmentDeleted
	events.SegmentDeleted = func(first, end int64, forced bool) {
		if deleted != nil {
			deleted(first, end, forced)
		}
		b.countMissed(first, end, o.Events.Missed)
	}
	return events
}

// pullEvents are the caller's, and the counts that tools ask for.
func (b *Broker) pullEvents(o *Options) pull.Events {
	events := o.Events.Pull
	pulled := events.Pulled
	events.Pulled = func(group, topic string, messages, bytes int) {
		b.got(group, topic, messages, 0)
		b.Admin.Counters.Get(admin.GroupGetSize, topic, group).Add(int64(bytes))
		if pulled != nil {
			pulled(group, topic, messages, bytes)
		}
	}
	return events
}

// countedAs is the topic that a queue's messages count for: a lite topic's count for its
// parent, since there may be a hundred thousand of them.
func countedAs(queue string) string {
	if parent, _, ok := names.OfLite(queue); ok {
		return parent
	}
	return queue
}

// popEvents are the caller's, and the counts that tools ask for.
func (b *Broker) popEvents(o *Options) pop.Events {
	events := o.Events.Pop
	popped, acked := events.Popped, events.Acked
	events.Popped = func(group, topic string, messages, again int) {
		topic = countedAs(topic)
		b.got(group, topic, messages, again)
		b.Admin.Counters.Get(admin.GroupCkNums, topic, group).Add(int64(messages))
		b.Admin.Counters.Get(admin.BrokerCkNums, b.Cluster, "").Add(int64(messages))
		if popped != nil {
			popped(group, topic, messages, again)
		}
	}
	lost := events.Lost
	events.Lost = func(group, topic string, queueID int32, offset int64) {
		topic = countedAs(topic)
		b.addMissed(group, topic, 1, o.Events.Missed)
		if lost != nil {
			lost(group, topic, queueID, offset)
		}
	}
	events.Acked = func(group, topic string, messages int) {
		topic = countedAs(topic)
		b.Admin.Counters.Get(admin.GroupAckNums, topic, group).Add(int64(messages))
		b.Admin.Counters.Get(admin.BrokerAckNums, b.Cluster, "").Add(int64(messages))
		if acked != nil {
			acked(group, topic, messages)
		}
	}
	return events
}

// clientsEvents are the caller's, and what the transactions have to know.
func (b *Broker) clientsEvents(o *Options) clients.Events {
	events := o.Events.Clients
	joined := events.ProducerJoined
	events.ProducerJoined = func(group string) {
		b.Txn.Joined(group)
		if joined != nil {
			joined(group)
		}
	}
	return events
}

// publishEvents are the caller's, and the counts that tools ask for.
func (b *Broker) publishEvents(o *Options) publish.Events {
	events := o.Events.Publish
	sentBack, retried, deadLettered := events.SentBack, events.Retried, events.DeadLettered
	events.SentBack = func(group, topic string) {
		b.Admin.Counters.Get(admin.SndbckPutNums, topic, group).Add(1)
		if sentBack != nil {
			sentBack(group, topic)
		}
	}
	events.Retried = func(group, topic string) {
		b.Admin.Counters.Get(admin.PopRetryNums, topic, group).Add(1)
		if retried != nil {
			retried(group, topic)
		}
	}
	events.DeadLettered = func(group, topic, reason string) {
		b.Admin.Counters.Get(admin.DLQPutNums, topic, group).Add(1)
		if deadLettered != nil {
			deadLettered(group, topic, reason)
		}
	}
	return events
}

// got counts messages that a group has received, again of them not for the first time.
func (b *Broker) got(group, topic string, messages, again int) {
	b.Admin.Got.Add(int64(messages))
	b.Admin.Counters.Get(admin.GroupGetNums, topic, group).AddAgain(int64(messages), int64(again))
	b.Admin.Counters.Get(admin.BrokerGetNums, b.Cluster, "").Add(int64(messages))
}

// countDispatched counts messages that have arrived, many of one topic at once.
func (b *Broker) countDispatched(records []storage.Dispatched) {
	if b.Store == nil {
		return // recovery replays what was counted when it was sent
	}
	count := func(topic string, messages, bytes int64) {
		b.Admin.Counters.Get(admin.TopicPutNums, topic, "").Add(messages)
		b.Admin.Counters.Get(admin.TopicPutSize, topic, "").Add(bytes)
	}
	var messages, bytes, all int64
	last := ""
	for i := range records {
		if records[i].Light {
			continue // it counts in its own topic
		}
		if topic := records[i].Topic; topic != last {
			if messages > 0 {
				count(last, messages, bytes)
			}
			last, messages, bytes = topic, 0, 0
		}
		all++
		messages++
		bytes += int64(records[i].Size)
	}
	if messages > 0 {
		count(last, messages, bytes)
	}
	b.Admin.Counters.Get(admin.BrokerPutNums, b.Cluster, "").Add(all)
}
