// Package group is the table of subscription groups: which groups exist on this broker,
// whether and how they may consume, how often and how late a message is retried.
//
// Invariants: a *Config that has been published never changes; the data version grows
// with every change; a change is in the state database before any caller sees it.
//
// Neighbours: clients and the fronts create groups on first use, publish and pop ask for
// retry policies, admin changes and deletes, the exports hear of changes through Events.
package group

import (
	"errors"
	"maps"
	"math"
	"slices"
)

// Sentinels of the table; details are wrapped around them.
var (
	ErrNotFound    = errors.New("subscription group does not exist")
	ErrIllegalName = errors.New("illegal group name")
	ErrIllegal     = errors.New("illegal group configuration")
	ErrSystemGroup = errors.New("group is a system group")
)

// RetryPolicy is how long a message waits before each further attempt.
type RetryPolicy struct {
	Exponential bool
	Initial     int64 // milliseconds; of the exponential form
	Max         int64
	Multiplier  int64
	Next        []int64 // milliseconds; the customized form; empty = the delay levels
}

var defaultNext = []int64{1_000, 5_000, 10_000, 30_000, 60_000, 120_000, 180_000, 240_000, 300_000, 360_000,
	420_000, 480_000, 540_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000}

// Steps is the customized form's table; it is the delay levels unless the group has its
// own.
func (p RetryPolicy) Steps() []int64 {
	if len(p.Next) == 0 {
		return defaultNext
	}
	return p.Next
}

// Delay is how many milliseconds a message that was attempted reconsumeTimes times
// before waits now. The customized table is entered at its third step, as retries have
// always begun with delay level 3.
func (p RetryPolicy) Delay(reconsumeTimes int32) int64 {
	n := int64(min(max(reconsumeTimes, 0), 32))
	if !p.Exponential || p.Initial == 0 && p.Max == 0 {
		steps := p.Steps()
		return steps[min(int(max(reconsumeTimes, 0))+2, len(steps)-1)]
	}
	d := float64(p.Initial) * math.Pow(float64(p.Multiplier), float64(n))
	if d >= float64(p.Max) {
		return p.Max
	}
	return int64(d)
}

// Subscription is a topic and filter that a group may be bound to by its configuration.
type Subscription struct {
	Topic, ExpressionType, Expression string
	Version                           int64
}

// Config is one group as it is at one moment. Once published it never changes: copy it
// with Clone to make another one.
type Config struct {
	Name                   string
	ConsumeEnable          bool
	ConsumeFromMin         bool
	ConsumeBroadcast       bool
	ConsumeOrderly         bool
	RetryQueues            int32
	RetryMaxTimes          int32
	Retry                  RetryPolicy
	BrokerID               int64
	WhichBrokerWhenSlow    int64
	NotifyConsumersChanged bool
	SysFlag                int32
	ConsumeTimeoutMinutes  int32
	Subscriptions          []Subscription
	Attributes             map[string]string // without the plus signs
}

// New returns the configuration that a group has unless told otherwise.
func New(name string) *Config {
	return &Config{Name: name, ConsumeEnable: true, ConsumeFromMin: true, ConsumeBroadcast: true,
		RetryQueues: 1, RetryMaxTimes: 16, WhichBrokerWhenSlow: 1, NotifyConsumersChanged: true,
		ConsumeTimeoutMinutes: 15}
}

// Clone returns a copy that may be changed.
func (c *Config) Clone() *Config {
	n := *c
	n.Attributes = maps.Clone(c.Attributes)
	n.Retry.Next = slices.Clone(c.Retry.Next)
	n.Subscriptions = slices.Clone(c.Subscriptions)
	return &n
}

// Equal tells whether both describe the same group.
func (c *Config) Equal(o *Config) bool {
	a, b := *c, *o
	a.Attributes, b.Attributes = nil, nil
	a.Subscriptions, b.Subscriptions = nil, nil
	ra, rb := a.Retry, b.Retry
	a.Retry, b.Retry = RetryPolicy{}, RetryPolicy{}
	return a.Name == b.Name && scalarsEqual(&a, &b) && maps.Equal(c.Attributes, o.Attributes) &&
		slices.Equal(c.Subscriptions, o.Subscriptions) && ra.Exponential == rb.Exponential &&
		ra.Initial == rb.Initial && ra.Max == rb.Max && ra.Multiplier == rb.Multiplier && slices.Equal(ra.Next, rb.Next)
}

func scalarsEqual(a, b *Config) bool {
	return a.ConsumeEnable == b.ConsumeEnable && a.ConsumeFromMin == b.ConsumeFromMin &&
		a.ConsumeBroadcast == b.ConsumeBroadcast && a.ConsumeOrderly == b.ConsumeOrderly &&
		a.RetryQueues == b.RetryQueues && a.RetryMaxTimes == b.RetryMaxTimes && a.BrokerID == b.BrokerID &&
		a.WhichBrokerWhenSlow == b.WhichBrokerWhenSlow && a.NotifyConsumersChanged == b.NotifyConsumersChanged &&
		a.SysFlag == b.SysFlag && a.ConsumeTimeoutMinutes == b.ConsumeTimeoutMinutes
}
