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
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "DELAY")
	s.createGroup(t, group, 16, false)
	const kept = 3
	p, l, table := v5Producer(t, s, topic), newLedger(t, kept), &timetable{}
	start := time.Now().Add(8 * time.Second)
	for seq := range kept + 1 { // the last, which the ledger does not expect, is taken back
		m, due := v5Message(topic, newSample(seq)), start.Add(time.Duration(seq)*700*time.Millisecond)
		m.SetDelayTimestamp(due)
		table.set(seq, due)
		receipts, err := p.Send(context.Background(), m)
		if err != nil || receipts[0].RecallHandle == "" {
			t.Fatalf("send: %v, %v", receipts, err)
		}
		if seq < kept {
			continue
		}
		if id, err := p.Recall(context.Background(), topic, receipts[0].RecallHandle); err != nil || id != receipts[0].MessageID {
			t.Fatalf("recall of %s: %s, %v", receipts[0].MessageID, id, err)
		}
	}
	c := v5Simple(t, s, group, topic)
	defer stopLater(c)
	done := time.Now().Add(2 * lateness)
	for time.Now().Before(done) {
		messages, err := c.Receive(context.Background(), 16, 60*time.Second)
		if err != nil {
			continue // not yet
		}
		for _, m := range messages {
			table.came(t, m.GetBody())
			v5Received(l, m)
			if err := c.Ack(context.Background(), m); err != nil {
				t.Errorf("ack: %v", err)
			}
		}
		select {
		case <-l.complete: // and another look, for what must not come
			done = time.Now().Add(3 * time.Second)
			l.complete = nil
		default:
		}
	}
	l.check()
}

// TestClassicGoTimers: a delay level, or a time of delivery, holds a message back for so long.
func TestClassicGoTimers(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := fresh(t, "topic")
	s.createTopic(t, topic, "DELAY")
	levels := []time.Duration{time.Second, 5 * time.Second, 10 * time.Second} // of the levels 1 to 3
	p, l, table := classicProducer(t, s), newLedger(t, 2*len(levels)), &timetable{}
	c := classicPush(t, s, fresh(t, "group"))
	err := c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			table.came(t, m.Body)
			classicReceived(l, m)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	for seq := range l.expected {
		m, level := classicMessage(topic, newSample(seq)), seq/2
		due := time.Now().Add(levels[level])
		if seq%2 == 0 {
			m.WithDelayTimeLevel(level + 1)
		} else {
			m.WithDelayTimestamp(due)
		}
		table.set(seq, due)
		if r, err := p.SendSync(context.Background(), m); err != nil || r.Status != primitive.SendOK {
			t.Fatalf("send: %v, %v", r, err)
		}
	}
	l.wait(2 * lateness)
	l.check()
}
