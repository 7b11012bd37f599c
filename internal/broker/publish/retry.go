package publish

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Properties of a dead letter that tell why and after how many deliveries it is one.
// Beside them stand RETRY_TOPIC and ORIGIN_MESSAGE_ID, as on Apache RocketMQ.
const (
	PropertyDeadLetterReason   = "__BOLIDE_DLQ_REASON"
	PropertyDeadLetterAttempts = "__BOLIDE_DLQ_ATTEMPTS"
)

// Reasons of dead letters.
const (
	ReasonAttempts = "attempts" // the last allowed delivery failed
	ReasonAsked    = "asked"    // the consumer asked for it
	ReasonOrdered  = "ordered"  // an orderly consumer gave it up
)

// spendRetry handles a client's own send to a retry topic: the way that clients take when
// a send-back fails, and the only one of orderly consumers, who come here when their
// attempts are over. A spent message becomes a dead letter.
func (p *Publisher) spendRetry(m *message.Message, t *traits, limit int32) error {
	group, _ := names.GroupOf(m.Topic)
	g, err := p.o.Group(group)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGroupNotFound, err)
	}
	if limit < 0 {
		limit = g.RetryMaxTimes
	}
	reason := ReasonAttempts
	switch {
	case Decide(m.ReconsumeTimes, limit, t.level).DeadLetter:
	case p.o.Ordered(group):
		reason = ReasonOrdered
	default:
		return nil
	}
	t.dead = deadLetterOf(group, m, reason)
	if err := p.bury(m, group, m.ReconsumeTimes, reason); err != nil {
		return err
	}
	t.level, t.due = 0, 0
	return nil
}

// SendBack is a consumer's request to have a message again later.
type SendBack struct {
	Group        string
	Offset       int64 // of the record in the log
	DelayLevel   int32 // 0: by the number of deliveries; below 0: dead letter
	OriginMsgID  string
	UnitMode     bool
	MaxReconsume int32 // the consumer's own limit; negative: the group's
}

// SendBack copies a message into the group's retry topic, behind the delay that its
// number of deliveries asks for, or into the dead-letter topic when they are spent.
func (p *Publisher) SendBack(r SendBack, done func(error)) {
	m, dead, err := p.sentBack(r)
	if err != nil || m == nil {
		done(err)
		return
	}
	if p.o.Events.SentBack != nil {
		p.o.Events.SentBack(r.Group, m.Properties.Value(message.PropertyRetryTopic))
	}
	p.store(m, false, nil, func(err error) {
		if dead != nil {
			p.toll(dead, err)
		}
		done(err)
	})
}

// sentBack makes the copy, which may be a dead letter; it is nil when the group wants no
// retries.
func (p *Publisher) sentBack(r SendBack) (*message.Message, *deadLetter, error) {
	g, err := p.o.Group(r.Group)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrGroupNotFound, err)
	case p.o.Broker.Get().BrokerPermission&topic.PermWrite == 0:
		return nil, nil, fmt.Errorf("%w: the broker", ErrNotWritable)
	case g.RetryQueues <= 0:
		return nil, nil, nil
	}
	m, err := p.messageAt(r.Offset)
	if err != nil {
		return nil, nil, err
	}
	limit := g.RetryMaxTimes
	if r.MaxReconsume >= 0 {
		limit = r.MaxReconsume
	}
	spent := m.ReconsumeTimes + 1
	origin := r.OriginMsgID
	if origin == "" {
		origin = message.OffsetID(m.StoreHost, m.PhysicalOffset)
	}
	m.Properties = m.Properties.Without(message.PropertySource)
	p.noteOrigin(m, m.Topic, origin)
	m.ReconsumeTimes, m.PreparedTransactionOffset = spent, 0
	d := Decide(spent, limit, r.DelayLevel)
	if d.DeadLetter {
		reason := ReasonAttempts
		if r.DelayLevel < 0 {
			reason = ReasonAsked
		}
		dead := deadLetterOf(r.Group, m, reason)
		return m, dead, p.bury(m, r.Group, spent, reason)
	}
	if err := p.toRetryTopic(m, names.Retry(r.Group), g.RetryQueues, r.UnitMode); err != nil {
		return nil, nil, err
	}
	m.Properties = m.Properties.With(message.PropertyDelay, itoa(d.Level))
	return m, nil, nil
}

// noteOrigin keeps the first topic and the first message id of a message through all its
// retries.
func (p *Publisher) noteOrigin(m *message.Message, topic, id string) {
	add := make([]string, 0, 4)
	if !m.Properties.Has(message.PropertyRetryTopic) {
		add = append(add, message.PropertyRetryTopic, topic)
	}
	if id != "" && !m.Properties.Has(message.PropertyOriginMessageID) {
		add = append(add, message.PropertyOriginMessageID, id)
	}
	if len(add) > 0 {
		m.Properties = m.Properties.WithAll(add...)
	}
}

func (p *Publisher) messageAt(offset int64) (*message.Message, error) {
	record, err := p.o.Store.ReadAt(offset)
	if err != nil {
		return nil, fmt.Errorf("%w: %d: %w", ErrMessageNotFound, offset, err)
	}
	m := new(message.Message)
	if _, err := message.DecodeStored(record, m); err != nil {
		return nil, fmt.Errorf("%w: %d: %w", ErrMessageNotFound, offset, err)
	}
	return m, nil
}

func (p *Publisher) toRetryTopic(m *message.Message, name string, queues int32, unit bool) error {
	sysFlag := int32(0)
	if unit {
		sysFlag = topic.SysFlagUnitSub
	}
	cfg, _, err := p.o.Topics.CreateInternal(name, queues, topic.PermRead|topic.PermWrite, false, sysFlag)
	if err != nil {
		return fmt.Errorf("retry topic: %w", err)
	}
	if !cfg.Writable() {
		return fmt.Errorf("%w: topic %s has permission %d", ErrNotWritable, name, cfg.Perm)
	}
	m.Topic, m.QueueID = name, randomQueue(cfg.WriteQueues)
	return nil
}

// Redelivery is a delivery of POP that lapsed without an acknowledgement.
type Redelivery struct {
	Message *message.Message // as it is stored, in its own topic or in a retry topic already
	Group   string
	// Spent is the number of deliveries that count, this one included: one more than the
	// message's reconsumeTimes, or the same for a delivery that was only suspended.
	Spent   int32
	PopTime int64 // of the delivery that lapsed
	Source  string
	Left    func() // ends the delivery where the copy has no room for Source
	// Classic sends it to the retry topic of a group that pulls, with no delay: it was
	// hidden for a while already.
	Classic bool
}

// Retry writes the next copy of a message to the group's POP retry topic, or to the
// dead-letter topic when its deliveries are spent. The copy carries the name of the
// delivery that it comes from; dispatching it is what ends that delivery (P6).
func (p *Publisher) Retry(r Redelivery, done func(error)) {
	m := r.Message
	g, err := p.o.Group(r.Group)
	if err != nil {
		done(fmt.Errorf("%w: %w", ErrGroupNotFound, err))
		return
	}
	if Decide(r.Spent, g.RetryMaxTimes, 0).DeadLetter {
		p.DeadLetter(r, ReasonAttempts, done)
		return
	}
	name, queues := m.Topic, int32(1)
	origin := originOf(m, r.Group)
	switch {
	case r.Classic:
		p.noteOrigin(m, origin, message.OffsetID(m.StoreHost, m.PhysicalOffset))
		name, queues = names.Retry(r.Group), max(g.RetryQueues, 1)
	case !names.IsRetry(name):
		name = p.popRetry(name, r.Group)
	}
	first := m.Properties.Value(message.PropertyFirstPopTime)
	if first == "" || m.ReconsumeTimes == 0 {
		first = strconv.FormatInt(r.PopTime, 10)
	}
	m.Properties = m.Properties.WithAll(
		message.PropertyFirstPopTime, first,
		message.PropertyOriginGroup, r.Group,
		message.PropertySource, r.Source)
	m.ReconsumeTimes, m.PreparedTransactionOffset = r.Spent, 0
	if err := p.toRetryTopic(m, name, queues, false); err != nil {
		done(err)
		return
	}
	p.store(m, false, r.Left, func(err error) {
		if err == nil && p.o.Events.Retried != nil {
			p.o.Events.Retried(r.Group, origin)
		}
		done(err)
	})
}

// originOf is the topic that a message of a topic or of a POP retry topic was sent to.
func originOf(m *message.Message, group string) string {
	if t, ok := names.OriginTopic(m.Topic, group); ok {
		return t
	}
	return m.Topic
}

func (p *Publisher) popRetry(topic, group string) string {
	if p.o.Broker.Get().EnableRetryTopicV2 {
		return names.PopRetryV2(topic, group)
	}
	return names.PopRetryV1(topic, group)
}

// DeadLetter moves a message to the group's dead-letter topic, whatever its attempts.
func (p *Publisher) DeadLetter(r Redelivery, reason string, done func(error)) {
	m := r.Message
	p.noteOrigin(m, originOf(m, r.Group), message.OffsetID(m.StoreHost, m.PhysicalOffset))
	m.Properties = m.Properties.WithAll(message.PropertyOriginGroup, r.Group, message.PropertySource, r.Source)
	dead := deadLetterOf(r.Group, m, reason)
	if err := p.bury(m, r.Group, r.Spent, reason); err != nil {
		done(err)
		return
	}
	p.store(m, false, r.Left, func(err error) { p.toll(dead, err); done(err) })
}

// deadLetter is what there is to tell of one. topic is the one that the message was first
// sent to.
type deadLetter struct{ group, topic, reason string }

// deadLetterOf is for m before it gets there. It keeps nothing of m's memory.
func deadLetterOf(group string, m *message.Message, reason string) *deadLetter {
	return &deadLetter{group, strings.Clone(cmp.Or(m.Properties.Value(message.PropertyRetryTopic), m.Topic)), reason}
}

// toll tells of a dead letter once it is stored, so that one that is tried again counts
// once.
func (p *Publisher) toll(d *deadLetter, err error) {
	if err == nil && p.o.Events.DeadLettered != nil {
		p.o.Events.DeadLettered(d.group, d.topic, d.reason)
	}
}

// bury turns m into a dead letter of the group. It starts a life of its own there, with
// no deliveries behind it: a reader with a low limit would otherwise move it on unseen.
func (p *Publisher) bury(m *message.Message, group string, spent int32, reason string) error {
	name := names.DeadLetter(group)
	cfg, _, err := p.o.Topics.CreateInternal(name, 1, topic.PermRead|topic.PermWrite, false, 0)
	if err != nil {
		return fmt.Errorf("dead-letter topic: %w", err)
	}
	m.Properties = m.Properties.Without(message.PropertyDelay, message.PropertyRealTopic, message.PropertyRealQueue).WithAll(
		PropertyDeadLetterReason, reason,
		PropertyDeadLetterAttempts, itoa(spent))
	m.Topic, m.QueueID, m.ReconsumeTimes = name, randomQueue(cfg.WriteQueues), 0
	m.PreparedTransactionOffset = 0
	return nil
}
