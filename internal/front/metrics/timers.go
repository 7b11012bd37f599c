package metrics

import (
	"maps"
	"slices"
	"strconv"

	"github.com/bolidemq/bolide/internal/broker"
)

// timers is what waits for a time of its own. What is in the log is in the index at once, so
// Apache's enqueue lag is always nothing.
func (p *page) timers(b *broker.Broker) error {
	f, err := b.Wheel.Figures()
	if err != nil {
		return err
	}
	p.single("rocketmq_timer_enqueue_lag", gauge, "Timers that are stored and not known to the wheel.", f.Behind)
	p.single("rocketmq_timer_enqueue_latency", gauge, "How old the first of them is, in milliseconds.", 0)
	p.single("rocketmq_timer_dequeue_lag", gauge, "Timers that wait.", f.Waiting)
	p.single("rocketmq_timer_dequeue_latency", gauge, "How long the next timer has been due, in milliseconds.", f.Late)
	byTopic := func(name, kind, help string, of map[string]int64) {
		p.family(name, kind, help)
		for _, topic := range slices.Sorted(maps.Keys(of)) {
			p.sample(name, of[topic], "topic", topic)
		}
	}
	byTopic("rocketmq_timing_messages", gauge, "Timers that wait, by the topic that they go to.", b.Wheel.Counts())
	byTopic("rocketmq_timer_enqueue_total", counter, "Timers stored since the start.", f.Arrived)
	byTopic("rocketmq_timer_dequeue_total", counter, "Timers that have left since the start.", f.Delivered)
	p.family("rocketmq_timer_message_snapshot", gauge, "Timers by how soon they are due: later than the bound before, and within this one.")
	for _, w := range f.Within {
		p.sample("rocketmq_timer_message_snapshot", w.Messages, "timer_bound_s", strconv.FormatInt(w.Seconds, 10))
	}
	return nil
}
