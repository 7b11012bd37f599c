package publish

import (
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// divert sends a message with a delay level to the queue of its level in the schedule
// topic, and one that is due at a later time to the topic of the timers, with its own topic
// and queue in two properties. Everything else stays where it is. Other kinds of delay beside
// a level do not count and are taken out.
func divert(m *message.Message, t *traits, levels Levels) {
	if t.level <= 0 && t.due <= 0 || m.Topic == names.Schedule {
		return
	}
	kind := message.TransactionType(m.SysFlag)
	if kind == message.SysTransactionRollback {
		return
	}
	if t.level <= 0 {
		if kind != message.SysTransactionPrepared {
			toWheel(m, t.due)
		}
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
