package txn

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Latencies are the upper bounds of the classes in which the time to a commit is counted, as
// Apache RocketMQ has them.
var Latencies = [...]time.Duration{5 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 12 * time.Hour, 24 * time.Hour}

// Tally is what was counted of a topic since the start.
type Tally struct {
	Topic                          string
	Committed, RolledBack, GivenUp int64
	Within                         [len(Latencies) + 1]int64 // commits by their latency; the last class has no bound
	Seconds                        float64                   // their sum
	Changed                        int64                     // when one was counted last, ms
}

type tally struct {
	mu sync.Mutex
	of map[string]*Tally
}

func (t *tally) at(topic string) *Tally {
	if t.of == nil {
		t.of = make(map[string]*Tally)
	}
	c := t.of[topic]
	if c == nil {
		c = &Tally{Topic: strings.Clone(topic)} // it may be a part of a whole record
		t.of[c.Topic] = c
	}
	return c
}

func (t *tally) ended(topic string, committed bool, after time.Duration, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.at(topic)
	c.Changed = now
	if !committed {
		c.RolledBack++
		return
	}
	c.Committed++
	c.Seconds += after.Seconds()
	i := 0
	for i < len(Latencies) && after > Latencies[i] {
		i++
	}
	c.Within[i]++
}

func (t *tally) givenUp(topic string, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.at(topic)
	c.GivenUp++
	c.Changed = now
}

// Tallies are the counts of all topics, in the order of their names.
func (t *Txn) Tallies() []Tally {
	t.tally.mu.Lock()
	defer t.tally.mu.Unlock()
	out := make([]Tally, 0, len(t.tally.of))
	for _, c := range t.tally.of {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Tally) int {
		if a.Topic < b.Topic {
			return -1
		}
		return 1
	})
	return out
}
