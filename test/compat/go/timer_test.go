package compat

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// lateness is what a busy machine may take to hand out what is due. Times of delivery are
// whole milliseconds, so that a message may come up to one before the time that it was asked for.
const lateness = 15 * time.Second

// timetable knows when each sample is due.
type timetable struct {
	mu  sync.Mutex
	due map[int]time.Time
}

func (p *timetable) set(seq int, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due == nil {
		p.due = map[int]time.Time{}
	}
	p.due[seq] = due
}

// came checks a delivery that happens now.
func (p *timetable) came(t *testing.T, body []byte) {
	now, seq := time.Now(), int(binary.BigEndian.Uint64(body))
	p.mu.Lock()
	due := p.due[seq]
	p.mu.Unlock()
	if late := now.Sub(due); late < -time.Millisecond || late > lateness {
		t.Errorf("message %d came %v after its time", seq, late)
	}
}

// TestV5Timers: what is sent for a time comes then and not before, and what was taken back
// does not come.
func TestV5Timers(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "DELAY"), s.newGroup(t, 16, false)
	const kept = 3
	p, l, table := v5Producer(t, s, topic), newLedger(t, kept), &timetable{}
	start := time.Now().Add(8 * time.Second)
	for seq := range kept + 1 { // the last, which the ledger does not expect, is taken back
		m, due := v5Message(topic, newSample(seq)), start.Add(time.Duration(seq)*700*time.Millisecond)
		m.SetDelayTimestamp(due)
		table.set(seq, due)
		r := v5Send(t, p, m)
		if r.RecallHandle == "" {
			t.Errorf("no recall handle: %v", r)
		}
		if seq < kept {
			continue
		}
		if id, err := p.Recall(context.Background(), topic, r.RecallHandle); err != nil || id != r.MessageID {
			t.Fatalf("recall of %s: %s, %v", r.MessageID, id, err)
		}
	}
	c := v5Simple(t, s, group, topic)
	for range kept {
		m := receive(t, c, 60*time.Second, 2*lateness)
		table.came(t, m.GetBody())
		v5Received(l, m)
		if err := c.Ack(context.Background(), m); err != nil {
			t.Errorf("ack: %v", err)
		}
	}
	nothingFor(t, c, 3*time.Second)
	l.check()
}

// TestClassicGoTimers: a delay level, or a time of delivery, holds a message back for so long.
func TestClassicGoTimers(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "DELAY")
	levels := []time.Duration{time.Second, 5 * time.Second, 10 * time.Second} // of the levels 1 to 3
	p, l, table := classicProducer(t, s), newLedger(t, 2*len(levels)), &timetable{}
	classicPush(t, s, fresh(t, "group"), topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		table.came(t, m.Body)
		return l.classic(m)
	})
	for seq := range l.expected {
		m, level := classicMessage(topic, newSample(seq)), seq/2
		due := time.Now().Add(levels[level])
		if seq%2 == 0 {
			m.WithDelayTimeLevel(level + 1)
		} else {
			m.WithDelayTimestamp(due)
		}
		table.set(seq, due)
		classicSend(t, p, m)
	}
	l.wait(2 * lateness)
	l.check()
}
