package publish

import (
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// divert sends a message with a delay level to the queue of its level in the schedule
// topic, with its own topic and queue in two properties. Everything else stays where it
// is. Other kinds of delay beside a level do not count and are taken out.
func divert(m *message.Message, t *traits, levels Levels) {
	if t.level <= 0 || m.Topic == names.Schedule {
		return
	}
	if kind := message.TransactionType(m.SysFlag); kind == message.SysTransactionRollback {
		return
	}
	if t.timer {
		m.Properties = m.Properties.Without(message.PropertyTimerDelayMs, message.PropertyTimerDelaySec, message.PropertyTimerDeliverMs)
	}
	level := levels.Clamp(t.level)
	m.Properties = m.Properties.WithAll(
		message.PropertyDelay, itoa(level),
		message.PropertyRealTopic, m.Topic,
		message.PropertyRealQueue, itoa(m.QueueID))
	m.Topic, m.QueueID = names.Schedule, level-1
}
