package publish

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// halfRoom is what a half message's properties leave free, so that every copy of it has room
// for the name of where it comes from, and for the checksum that goes with that.
const halfRoom = 256

// tagOfOps is the tag of op messages: the half messages in their bodies are decided.
const tagOfOps = "d"

// checkHalf notes whether m is a half message. A retry keeps the property of the message that
// it was and is none.
func (t *traits) checkHalf(m *message.Message) error {
	prepared := message.TransactionType(m.SysFlag) == message.SysTransactionPrepared
	if m.ReconsumeTimes > 0 && t.level > 0 || names.IsRetry(m.Topic) {
		return nil
	}
	if prepared && !t.transaction {
		return fmt.Errorf("%w: sysFlag says that it is a half message, and the property TRAN_MSG does not say true", ErrMessageIllegal)
	}
	t.half = t.transaction
	return nil
}

// admitHalf refuses a half message that is not wanted or that nobody could be asked about.
func (p *Publisher) admitHalf(m *message.Message, t *traits, group string) error {
	if p.o.Broker.Get().RejectTransactionMessage {
		return fmt.Errorf("%w by this broker: its setting rejectTransactionMessage is true", ErrTransaction)
	}
	m.Properties = m.Properties.Without(message.PropertyRealTopic, message.PropertyRealQueue, message.PropertyTransactionID,
		message.PropertyTransactionCheckTimes, message.PropertyTransactionPreparedOffset)
	if !m.Properties.Has(message.PropertyProducerGroup) {
		if group == "" {
			return fmt.Errorf("%w: a half message needs the property PGROUP, which names the producers that can be asked about it", ErrMessageIllegal)
		}
		m.Properties = m.Properties.With(message.PropertyProducerGroup, group)
	}
	added := len(m.Topic) + len(t.uniqKey) + 64
	if most := message.MaxProperties - halfRoom - added; len(m.Properties) > most {
		return fmt.Errorf("%w: the properties of this half message have %d bytes, the limit is %d", storage.ErrPropertiesTooLarge, len(m.Properties), most)
	}
	return nil
}

// halve sends the first half of a transaction to the half topic, where no consumer looks,
// with its own topic and queue in two properties. A delay counts from the commit on.
func halve(m *message.Message, t *traits) {
	m.Properties = m.Properties.WithAll(
		message.PropertyTransactionID, t.uniqKey,
		message.PropertyRealTopic, m.Topic,
		message.PropertyRealQueue, itoa(m.QueueID))
	m.SysFlag = message.WithTransactionType(m.SysFlag, 0)
	m.Topic, m.QueueID = names.Half, 0
}

// Commit stores the second half of a transaction: m is the half message as it was read, and
// becomes visible in its own topic and queue. source names the half message, which the
// dispatch of the copy ends (P6). held is as in Request.
func (p *Publisher) Commit(m *message.Message, to string, queue int32, source string, held bool, done func(error)) {
	m.PreparedTransactionOffset = m.PhysicalOffset
	m.SysFlag = message.WithTransactionType(m.SysFlag, message.SysTransactionCommit)
	m.Topic, m.QueueID = to, p.queueNow(to, queue)
	m.Properties = m.Properties.Without(message.PropertyTransaction, message.PropertyRealTopic, message.PropertyRealQueue,
		message.PropertyTransactionCheckTimes, message.PropertyTransactionPreparedOffset, message.PropertySource)
	m.Properties = m.Properties.With(message.PropertySource, source)
	t := readTraits(m.Properties)
	if t.level > 0 || t.timer {
		p.store(m, held, nil, done)
		return
	}
	p.append(m, p.lightsOf(m, &t), held, func(_ storage.Placed, err error) { done(err) })
}

// Rehalve stores a half message once more in the half topic.
func (p *Publisher) Rehalve(m *message.Message, source string, done func(storage.Placed, error)) {
	m.Topic, m.QueueID = names.Half, 0
	m.Properties = m.Properties.Without(message.PropertySource).With(message.PropertySource, source)
	p.o.Store.Append(m, done)
}

// GiveUp stores a half message that nobody decides in the topic for those.
func (p *Publisher) GiveUp(m *message.Message, checks int32, source string, done func(error)) {
	if _, _, err := p.o.Topics.CreateInternal(names.TransCheckMaxTime, 1, topic.PermRead|topic.PermWrite, false, 0); err != nil {
		done(fmt.Errorf("topic of undecided transactions: %w", err))
		return
	}
	m.Topic, m.QueueID = names.TransCheckMaxTime, 0
	m.Properties = m.Properties.WithAll(message.PropertyTransactionCheckTimes, itoa(checks), message.PropertySource, source)
	p.put(m, false, func(_ storage.Placed, err error) { done(err) })
}

// Op stores an op message: its body lists half messages that are decided. source, where it is
// not empty, is what makes it the decision itself.
func (p *Publisher) Op(body []byte, source string, now int64, held bool, done func(storage.Placed, error)) {
	props := message.Properties("").With(message.PropertyTags, tagOfOps).With(message.PropertyUniqKey, message.NewUniqueID())
	if source != "" {
		props = props.With(message.PropertySource, source)
	}
	p.put(&message.Message{Topic: names.OpHalf, Body: body, Properties: props, BornTimestamp: now, BornHost: p.o.StoreHost, StoreHost: p.o.StoreHost}, held, done)
}

func (p *Publisher) put(m *message.Message, held bool, done func(storage.Placed, error)) {
	if held {
		p.o.Store.AppendHeld(m, done)
	} else {
		p.o.Store.Append(m, done)
	}
}
