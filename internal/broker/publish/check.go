package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Sentinels; what was wrong exactly is wrapped around them.
var (
	ErrTopicNotFound   = errors.New("topic does not exist")
	ErrTopicIllegal    = errors.New("illegal topic name")
	ErrForbidden       = errors.New("sending to the topic is forbidden")
	ErrNotWritable     = errors.New("not writable")
	ErrQueueIllegal    = errors.New("illegal queue id")
	ErrGroupNotFound   = errors.New("consumer group does not exist")
	ErrMessageIllegal  = errors.New("illegal message")
	ErrBodyTooLarge    = errors.New("the message body is too large")
	ErrMessageNotFound = errors.New("no message at this offset")
	ErrNotYet          = errors.New("broker unable to service, until")
	ErrTransaction     = errors.New("transaction messages are not accepted")
	ErrTimer           = errors.New("illegal delivery time")
	ErrTimersOff       = errors.New("messages for a time of delivery are switched off")
)

// checkTopic finds the topic of a send, or creates it where the rules allow, and settles
// the message's queue.
func (p *Publisher) checkTopic(r *Request) (cfg *topic.Config, created bool, err error) {
	if at := p.o.Broker.Get().StartAcceptSendRequestTimeStamp; at > 0 && time.Now().UnixMilli() < at {
		return nil, false, fmt.Errorf("%w %s", ErrNotYet, time.UnixMilli(at).Format("2006-01-02 15:04:05,000"))
	}
	m := r.Message
	cfg, ok := p.o.Topics.Get(m.Topic)
	if !ok {
		if err := names.CheckTopic(m.Topic); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrTopicIllegal, err)
		}
	}
	if names.IsLite(m.Topic) {
		return nil, false, fmt.Errorf("%w: %s is the queue of a lite topic: send to its parent, with the lite topic in property %s", ErrTopicIllegal, m.Topic, message.PropertyLiteTopic)
	}
	if names.ForbiddenToSend(m.Topic) {
		return nil, false, fmt.Errorf("%w: %s", ErrForbidden, m.Topic)
	}
	if !ok {
		if cfg, created, err = p.createTopic(r); err != nil {
			return nil, false, err
		}
	}
	switch {
	case !cfg.Writable():
		return nil, false, fmt.Errorf("%w: topic %s has permission %d", ErrNotWritable, cfg.Name, cfg.Perm)
	case p.o.Broker.Get().BrokerPermission&topic.PermWrite == 0:
		return nil, false, fmt.Errorf("%w: the broker", ErrNotWritable)
	case m.QueueID >= cfg.Queues():
		return nil, false, fmt.Errorf("%w: queue %d of topic %s, which has %d", ErrQueueIllegal, m.QueueID, cfg.Name, cfg.Queues())
	case m.QueueID < 0:
		m.QueueID = randomQueue(cfg.WriteQueues)
	}
	return cfg, created, nil
}

// createTopic creates the topic of a send after Apache's rules: by the sender's template,
// or, for a retry topic, because its group exists.
func (p *Publisher) createTopic(r *Request) (*topic.Config, bool, error) {
	name := r.Message.Topic
	retry := names.IsRetry(name)
	sysFlag := int32(0)
	switch {
	case r.UnitMode && retry:
		sysFlag = topic.SysFlagUnitSub
	case r.UnitMode:
		sysFlag = topic.SysFlagUnit
	}
	if retry {
		group, _ := names.GroupOf(name)
		if _, err := p.o.Group(group); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrGroupNotFound, err)
		}
		return p.o.Topics.CreateInternal(name, 1, topic.PermRead|topic.PermWrite, false, sysFlag)
	}
	cfg, created, err := p.o.Topics.CreateForSend(name, r.DefaultTopic, r.DefaultQueues, sysFlag)
	if errors.Is(err, topic.ErrNoTemplate) {
		return nil, false, fmt.Errorf("%w: %s: %w", ErrTopicNotFound, name, err)
	}
	return cfg, created, err
}

// checkMessage refuses bodies and properties that can't be stored as they are.
func (p *Publisher) checkMessage(m *message.Message) error {
	switch {
	case len(m.Body) == 0:
		return fmt.Errorf("%w: the body is empty", ErrMessageIllegal)
	case len(m.Body) > p.o.MaxBody():
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrBodyTooLarge, len(m.Body), p.o.MaxBody())
	}
	if err := m.Properties.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrMessageIllegal, err)
	}
	return nil
}

var errNoKey = fmt.Errorf("%w: a message of a compacted topic needs a key", ErrMessageIllegal)

// checkBatch refuses what may not be in a batch: retries, delays of any kind, half
// messages, and a whole that is larger than one message may be.
func (p *Publisher) checkBatch(head *message.Message, ms []*message.Message) error {
	if len(ms) == 0 {
		return fmt.Errorf("%w: the batch is empty", ErrMessageIllegal)
	}
	if names.IsRetry(head.Topic) {
		return fmt.Errorf("%w: no batch may go to retry topic %s", ErrMessageIllegal, head.Topic)
	}
	total := 0
	for i, m := range ms {
		if err := p.checkMessage(m); err != nil {
			return fmt.Errorf("message %d of the batch: %w", i, err)
		}
		t := readTraits(m.Properties)
		if t.hasLite {
			return fmt.Errorf("%w: message %d of the batch is for lite topic %s, and a batch can't be for one", ErrMessageIllegal, i, t.lite)
		}
		if t.level > 0 || t.timer {
			return fmt.Errorf("%w: message %d of the batch has a delay, which a batch can't have", ErrMessageIllegal, i)
		}
		if err := t.check(head); err != nil {
			return fmt.Errorf("message %d of the batch: %w", i, err)
		}
		if t.half {
			return fmt.Errorf("%w: message %d of the batch has TRAN_MSG, and a half message can't be in a batch", ErrMessageIllegal, i)
		}
		total += len(m.Body)
	}
	if most := p.o.MaxBody(); total > most {
		return fmt.Errorf("%w: the batch has %d bytes, the limit is %d", ErrBodyTooLarge, total, most)
	}
	return nil
}
