package admin

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Why a client's answer can't be had.
var (
	ErrNotOnline = errors.New("not online")
	ErrTooOld    = errors.New("the client's version is too low")
	ErrUnasked   = errors.New("the client can not be asked")
)

// How long a client has to answer, and from which version on one understands. The
// versions are numbers of the protocol: 3.1.8 and 3.0.7.
const (
	askFor       = 10 * time.Second
	askStatusFor = 5 * time.Second

	understandsQuestions = 62
	understandsStatus    = 28
)

// RunningInfo asks a consumer what it does.
func (a *Admin) RunningInfo(h remoting.GetConsumerRunningInfoRequest, done func(clients.Answer, error)) {
	a.ask(h.ConsumerGroup, h.ClientID, clients.Question{Code: remoting.ReqGetConsumerRunningInfo, Header: &h, Timeout: askFor}, done)
}

// ConsumeDirectly lets one consumer consume one stored message now, whatever its group's
// offsets are, and returns what it made of it.
func (a *Admin) ConsumeDirectly(h remoting.ConsumeMessageDirectlyRequest, broker string, done func(clients.Answer, error)) {
	_, at, err := message.ParseOffsetID(h.MsgID)
	if err != nil {
		done(clients.Answer{}, fmt.Errorf("%w: msgId %.64q: %w", ErrIllegal, h.MsgID, err))
		return
	}
	record, err := a.o.CommitLog.ReadAt(at)
	if err != nil {
		done(clients.Answer{}, fmt.Errorf("message %s: %w", h.MsgID, err))
		return
	}
	h.BrokerName = broker
	if t, ok := a.o.Topics.Get(h.Topic); ok {
		h.TopicSysFlag = t.SysFlag
	}
	if g, ok := a.o.Groups.Get(h.ConsumerGroup); ok {
		h.GroupSysFlag = g.SysFlag
	}
	a.ask(h.ConsumerGroup, h.ClientID, clients.Question{Code: remoting.ReqConsumeMessageDirectly, Header: &h, Body: record, Timeout: askFor}, done)
}

func (a *Admin) ask(group, clientID string, q clients.Question, done func(clients.Answer, error)) {
	c, ok := a.o.Clients.Find(group, clientID)
	if !ok {
		done(clients.Answer{}, fmt.Errorf("the consumer <%s> <%s> is %w", group, clientID, ErrNotOnline))
		return
	}
	asked, ok := c.Channel.(clients.Asked)
	switch {
	case c.Version < understandsQuestions:
		done(clients.Answer{}, fmt.Errorf("the consumer <%s> <%s>: %w", group, clientID, ErrTooOld))
	case !ok:
		done(clients.Answer{}, fmt.Errorf("the consumer <%s> <%s>: %w", group, clientID, ErrUnasked))
	default:
		asked.Ask(q, func(answer clients.Answer, err error) {
			switch {
			case errors.Is(err, clients.ErrNoAnswer):
				err = fmt.Errorf("the consumer <%s> <%s>: %w", group, clientID, err)
			case err != nil:
				err = fmt.Errorf("the consumer <%s> <%s>: %w: %w", group, clientID, ErrUnasked, err)
			}
			done(answer, err)
		})
	}
}

// ConsumerStatus asks the members of a group, or one of them, which offsets of a topic's
// queues they have come to. Who does not answer is left out.
func (a *Admin) ConsumerStatus(topic, group, clientID string, done func(map[string]map[remoting.MessageQueue]int64, error)) {
	g, ok := a.o.Clients.Group(group)
	if !ok {
		done(nil, fmt.Errorf("no consumer of the group [%s] is there: %w", group, ErrNotOnline))
		return
	}
	var ask []clients.Client
	for _, c := range g.Members {
		if clientID != "" && clientID != c.ID {
			continue
		}
		if c.Version < understandsStatus {
			done(nil, fmt.Errorf("the consumer <%s> <%s>: %w", group, c.ID, ErrTooOld))
			return
		}
		if _, ok := c.Channel.(clients.Asked); ok {
			ask = append(ask, c)
		}
	}
	s := &statusPoll{left: len(ask), of: make(map[string]map[remoting.MessageQueue]int64, len(ask)), done: done}
	if s.left == 0 {
		done(s.of, nil)
		return
	}
	h := &remoting.InvokeBrokerToGetConsumerStatusRequest{Topic: topic, Group: group}
	for _, c := range ask {
		c.Channel.(clients.Asked).Ask(clients.Question{Code: remoting.ReqGetConsumerStatusFromClient, Header: h, Timeout: askStatusFor},
			func(answer clients.Answer, err error) { s.answered(c.ID, answer, err) })
	}
}

// statusPoll collects the answers of several clients.
type statusPoll struct {
	mu   sync.Mutex
	left int
	of   map[string]map[remoting.MessageQueue]int64
	done func(map[string]map[remoting.MessageQueue]int64, error)
}

func (s *statusPoll) answered(clientID string, answer clients.Answer, err error) {
	var body remoting.ConsumerStatusBody
	ok := err == nil && answer.Code == remoting.ResSuccess && remoting.Unmarshal(answer.Body, &body) == nil
	s.mu.Lock()
	if ok {
		s.of[clientID] = body.MessageQueueTable
	}
	s.left--
	last := s.left == 0
	s.mu.Unlock()
	if last {
		s.done(s.of, nil)
	}
}
