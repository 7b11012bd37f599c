package admin

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// The counts that tools of Apache RocketMQ ask for by name. Those of a topic have the topic
// as their key, those of a group topic@group, those of the broker its cluster's name.
const (
	TopicPutNums  = "TOPIC_PUT_NUMS"
	TopicPutSize  = "TOPIC_PUT_SIZE"
	BrokerPutNums = "BROKER_PUT_NUMS"
	GroupGetNums  = "GROUP_GET_NUMS"
	GroupGetSize  = "GROUP_GET_SIZE"
	BrokerGetNums = "BROKER_GET_NUMS"
	GroupAckNums  = "GROUP_ACK_NUMS"
	BrokerAckNums = "BROKER_ACK_NUMS"
	GroupCkNums   = "GROUP_CK_NUMS" // deliveries of POP
	BrokerCkNums  = "BROKER_CK_NUMS"
	SndbckPutNums = "SNDBCK_PUT_NUMS"
	DLQPutNums    = "DLQ_PUT_NUMS"
	PopRetryNums  = "POP_RETRY_PUT_NUMS" // deliveries of POP that lapsed, to come again
)

// mostCounters bounds what names out of the air can cost; a counter is 1 KiB.
const mostCounters = 100_000

type counterKey struct{ name, key, group string }

// Counters count things by name and key. The zero value is ready.
type Counters struct {
	mu sync.RWMutex
	of map[counterKey]*Counter
}

// Get returns the counter of a topic, or of a group's reading of one; group is empty for
// the former.
func (c *Counters) Get(name, key, group string) *Counter {
	k := counterKey{name, key, group}
	c.mu.RLock()
	n := c.of[k]
	c.mu.RUnlock()
	if n != nil {
		return n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.of[k]; n != nil {
		return n
	}
	if c.of == nil {
		c.of = make(map[counterKey]*Counter)
	}
	n = &Counter{}
	if len(c.of) < mostCounters {
		c.of[k] = n
	}
	return n
}

// Look returns a counter by the text form of its key, if it has ever counted.
func (c *Counters) Look(name, key string) (*Counter, bool) {
	topic, group, _ := strings.Cut(key, "@")
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, ok := c.of[counterKey{name, topic, group}]
	return n, ok
}

// Rate is how much a counter has counted per second over the last minute.
func (c *Counters) Rate(name, key, group string) float64 {
	c.mu.RLock()
	n := c.of[counterKey{name, key, group}]
	c.mu.RUnlock()
	if n == nil {
		return 0
	}
	return n.Read().Minute.PerSecond
}

// Total is all that one counter has counted.
type Total struct {
	Key, Group string
	Total      int64
	Again      int64 // of Total, see Counter.AddAgain
}

// Totals lists the counters of a name, sorted.
func (c *Counters) Totals(name string) (out []Total) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for k, n := range c.of {
		if k.name == name {
			n.mu.Lock()
			out = append(out, Total{k.key, k.group, n.now.sum, n.again})
			n.mu.Unlock()
		}
	}
	slices.SortFunc(out, func(a, b Total) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Group, b.Group)) })
	return out
}

// Forget drops what was counted for a topic.
func (c *Counters) Forget(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.of {
		if k.key == topic {
			delete(c.of, k)
		}
	}
}

// Counter counts something and knows how much of it there was in the last minute, hour
// and day. Nothing runs behind it: marks are set and dropped when somebody adds or asks.
type Counter struct {
	mu                sync.Mutex
	now               mark
	again             int64
	minute, hour, day span
}

// mark is what a counter had counted at a time.
type mark struct {
	at         time.Time
	sum, times int64
}

// marks are the most that a span keeps: the day's, one an hour.
const marks = 25

// span is a time that a counter remembers, with a mark at each step.
type span struct {
	marks [marks]mark
	n     int
}

var (
	minuteSpan, minuteStep = time.Minute, 10 * time.Second
	hourSpan, hourStep     = time.Hour, 10 * time.Minute
	daySpan, dayStep       = 24 * time.Hour, time.Hour
)

// Add counts n in one go.
func (c *Counter) Add(n int64) { c.add(time.Now(), n, 1) }

// AddAgain is Add when some of n are not new: deliveries from POP's retry topics. Who reads
// both sees them at one moment, so neither what is new nor what is not ever gets less.
func (c *Counter) AddAgain(n, again int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(time.Now(), n, 1)
	c.again += again
}

func (c *Counter) add(now time.Time, n, times int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(now, n, times)
}

func (c *Counter) addLocked(now time.Time, n, times int64) {
	c.now.at = now
	c.minute.mark(c.now, minuteSpan, minuteStep)
	c.hour.mark(c.now, hourSpan, hourStep)
	c.day.mark(c.now, daySpan, dayStep)
	c.now.sum += n
	c.now.times += times
}

// mark notes what was counted before now, at most once a step.
func (s *span) mark(m mark, length, step time.Duration) {
	if s.n > 0 && m.at.Sub(s.marks[s.n-1].at) < step {
		return
	}
	s.trim(m.at, length)
	if s.n == marks {
		copy(s.marks[:], s.marks[1:])
		s.n--
	}
	s.marks[s.n] = m
	s.n++
}

// trim drops marks from before the span.
func (s *span) trim(now time.Time, length time.Duration) {
	gone := 0
	for gone < s.n && now.Sub(s.marks[gone].at) > length {
		gone++
	}
	copy(s.marks[:], s.marks[gone:s.n])
	s.n -= gone
}

// Figure is what was counted over a span of time.
type Figure struct {
	Sum       int64
	PerSecond float64
	PerTime   float64 // what one Add counted on average
}

// CounterFigures is all that a counter says.
type CounterFigures struct{ Minute, Hour, Day Figure }

// Read returns the figures of now.
func (c *Counter) Read() CounterFigures { return c.read(time.Now()) }

func (c *Counter) read(now time.Time) CounterFigures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CounterFigures{
		Minute: c.minute.figure(c.now, now, minuteSpan),
		Hour:   c.hour.figure(c.now, now, hourSpan),
		Day:    c.day.figure(c.now, now, daySpan),
	}
}

// figure is what was counted since the oldest mark in the span. A counter of which nobody
// has heard for longer has counted nothing.
func (s *span) figure(total mark, now time.Time, length time.Duration) Figure {
	s.trim(now, length)
	if s.n == 0 {
		return Figure{}
	}
	first := s.marks[0]
	f := Figure{Sum: total.sum - first.sum}
	f.PerSecond = float64(f.Sum) / max(now.Sub(first.at).Seconds(), 1)
	if times := total.times - first.times; times > 0 {
		f.PerTime = float64(f.Sum) / float64(times)
	}
	return f
}
