package publish

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Why a dead letter is not redriven.
var (
	ErrNoOrigin = errors.New("the dead letter does not say which topic it came from")
	ErrInOrder  = errors.New("messages of a FIFO topic have no retry topic: only the topic itself can have it back (--to-topic), and with it all of its groups")
)

// Redrive is a dead letter that gets another life.
type Redrive struct {
	Message *message.Message // as it is stored in the dead-letter topic
	Group   string
	ToTopic bool // to the topic that it came from instead of to the group's retry topic
	Source  string
	// Left notes that it was redriven, where the copy has no room for the name.
	Left func()
}

// Redrive puts a dead letter where its group finds it again, with no deliveries behind it:
// in the retry topic that the group's kind of consumers reads, or in its topic. The copy
// carries the name of the dead letter (P6). done gets the topic that it went to.
func (p *Publisher) Redrive(r Redrive, done func(topic string, err error)) {
	if err := p.redrive(r); err != nil {
		done("", err)
		return
	}
	to := r.Message.Topic
	p.store(r.Message, false, r.Left, func(err error) { done(to, err) })
}

// redrive settles topic, queue and properties of the copy.
func (p *Publisher) redrive(r Redrive) error {
	m := r.Message
	origin := m.Properties.Value(message.PropertyRetryTopic)
	if origin == "" {
		return ErrNoOrigin
	}
	t, ok := p.o.Topics.Get(origin)
	if !ok {
		return fmt.Errorf("%w: %s, where the dead letter came from", ErrTopicNotFound, origin)
	}
	popped := m.Properties.Has(message.PropertyOriginGroup)
	m.Properties = m.Properties.Without(PropertyDeadLetterReason, PropertyDeadLetterAttempts, message.PropertyFirstPopTime,
		message.PropertyPopCheckpoint, message.PropertyDelay, message.PropertySource).With(message.PropertySource, r.Source)
	m.ReconsumeTimes, m.PreparedTransactionOffset = 0, 0
	fifo := t.MessageType() == "FIFO"
	switch {
	case r.ToTopic:
		return p.toOrigin(m, t, fifo)
	case fifo:
		return ErrInOrder
	case popped:
		return p.toRetryTopic(m, p.popRetry(origin, r.Group), 1, false)
	}
	return p.toGroupsRetryTopic(m, r.Group)
}

func (p *Publisher) toGroupsRetryTopic(m *message.Message, group string) error {
	g, err := p.o.Group(group)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGroupNotFound, err)
	}
	return p.toRetryTopic(m, names.Retry(group), max(g.RetryQueues, 1), false)
}

// toOrigin puts m at the end of its topic: in any queue, or in that of its message group.
func (p *Publisher) toOrigin(m *message.Message, t *topic.Config, fifo bool) error {
	if !t.Writable() {
		return fmt.Errorf("%w: topic %s has permission %d", ErrNotWritable, t.Name, t.Perm)
	}
	m.Topic, m.QueueID = t.Name, randomQueue(t.WriteQueues)
	if group := m.Properties.Value(message.PropertyShardingKey); fifo && group != "" {
		m.QueueID = int32(message.GroupQueue(group, int(t.WriteQueues)))
	}
	return nil
}
