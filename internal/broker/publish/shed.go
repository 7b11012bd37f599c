package publish

import (
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// expendable is what the server adds to a copy, the first to be missed least. What the
// sender has set is never taken out.
var expendable = []string{
	message.PropertyFirstPopTime, PropertyDeadLetterAttempts, message.PropertyOriginGroup, message.PropertyRealQueue,
	message.PropertyRealTopic, message.PropertyOriginMessageID, PropertyDeadLetterReason, message.PropertyRetryTopic,
	message.PropertySource,
}

// fits reports whether a record can hold the properties, and the checksum that goes with a
// source.
func fits(p message.Properties) bool {
	room := message.MaxProperties - len(p)
	return room >= message.CRCRoom || room >= 0 && !p.Has(message.PropertySource)
}

// shed makes a copy's properties fit: the message fitted as it was sent, what was added may
// be too much.
func shed(m *message.Message) {
	for _, name := range expendable {
		if fits(m.Properties) {
			return
		}
		if (m.Topic == names.Schedule || m.Topic == names.WheelTimer) && (name == message.PropertyRealTopic || name == message.PropertyRealQueue) {
			continue // it would not find its way back
		}
		m.Properties = m.Properties.Without(name)
	}
}

// store appends a message of the server's own making: a retry, a dead letter, a delayed
// message that is due. Its PropertySource names the state that it leaves, if any: dispatching the
// copy ends that state (P6). Where there is no room for the name, left ends it once the copy
// is stored; a crash between the two repeats the message. Where there is none for a delay,
// there is no delay.
func (p *Publisher) store(m *message.Message, held bool, left func(), done func(error)) {
	t := readTraits(m.Properties)
	lights := p.lightsOf(m, &t)
	t.due, _ = p.dueOf(m, &t, false) // what is no time any more is no reason to lose the message
	plain := *m
	divert(m, &t, p.o.Levels)
	shed(m)
	if !fits(m.Properties) {
		*m = plain
		m.Properties = m.Properties.Without(message.PropertyDelay)
		shed(m)
	}
	named := t.source == "" || left == nil || m.Properties.Has(message.PropertySource)
	p.append(m, lights, held, func(_ storage.Placed, err error) {
		if err == nil && !named {
			left()
		}
		done(err)
	})
}
