package metrics

import (
	"maps"
	"slices"
	"strconv"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/txn"
)

// transactions is what is undecided and what was decided.
func (p *page) transactions(b *broker.Broker) {
	open, oldest := b.Txn.Open(), b.Txn.Oldest()
	tallies := b.Txn.Tallies()
	for i := range tallies {
		if _, ok := open[tallies[i].Topic]; !ok {
			open[tallies[i].Topic] = 0
		}
	}
	topics := slices.Sorted(maps.Keys(open))
	p.family("rocketmq_half_messages", gauge, "Half messages that are neither committed nor rolled back.")
	for _, name := range topics {
		p.sample("rocketmq_half_messages", open[name], "topic", name)
	}
	p.family("bolide_half_message_age", gauge, "Age of the oldest of them, in milliseconds.")
	now := b.Clock.NowMilli()
	for _, name := range topics {
		age := int64(0)
		if at, ok := oldest[name]; ok {
			age = max(now-at, 0)
		}
		p.sample("bolide_half_message_age", age, "topic", name)
	}
	for _, f := range []struct {
		name, help string
		value      func(t *txn.Tally) int64
	}{
		{"rocketmq_commit_messages_total", "Half messages committed.", func(t *txn.Tally) int64 { return t.Committed }},
		{"rocketmq_rollback_messages_total", "Half messages rolled back.", func(t *txn.Tally) int64 { return t.RolledBack }},
		{"bolide_given_up_messages_total", "Half messages that nobody decided, moved to TRANS_CHECK_MAX_TIME_TOPIC.", func(t *txn.Tally) int64 { return t.GivenUp }},
	} {
		p.family(f.name, counter, f.help)
		for i := range tallies {
			p.sample(f.name, f.value(&tallies[i]), "topic", tallies[i].Topic)
		}
	}
	p.latencies(tallies)
}

// latencies is the histogram of the time from half message to commit, in seconds.
func (p *page) latencies(tallies []txn.Tally) {
	const name = "rocketmq_finish_message_latency"
	p.family(name, "histogram", "Seconds from half message to commit.")
	for i := range tallies {
		t := &tallies[i]
		sum := int64(0)
		for k, n := range t.Within {
			sum += n
			bound := "+Inf"
			if k < len(txn.Latencies) {
				bound = strconv.Itoa(int(txn.Latencies[k].Seconds()))
			}
			p.sample(name+"_bucket", sum, "topic", t.Topic, "le", bound)
		}
		p.sample(name+"_sum", int64(t.Seconds), "topic", t.Topic)
		p.sample(name+"_count", sum, "topic", t.Topic)
	}
}
