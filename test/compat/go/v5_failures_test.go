package compat

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// The failure paths of article 001: what its two programs meet when a handler fails, a process
// dies or an acknowledgement never comes. They wait for real invisible times, side by side.

// deliveries records which message came how often, with which attempt and when.
type deliveries struct {
	mu   sync.Mutex
	of   map[string][]delivery
	more chan struct{} // one token per delivery
}

type delivery struct {
	attempt int32
	at      time.Time
}

func newDeliveries() *deliveries {
	return &deliveries{of: map[string][]delivery{}, more: make(chan struct{}, 1000)}
}

// add records one and returns how many there are now of this message.
func (d *deliveries) add(mv *rmq.MessageView) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	body := string(mv.GetBody())
	d.of[body] = append(d.of[body], delivery{mv.GetDeliveryAttempt(), time.Now()})
	select {
	case d.more <- struct{}{}:
	default:
	}
	return len(d.of[body])
}

func (d *deliveries) get(body string) []delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]delivery(nil), d.of[body]...)
}

// until waits for a condition that deliveries bring about.
func (d *deliveries) until(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for !holds() {
		select {
		case <-d.more:
		case <-deadline:
			t.Fatalf("within %v: %s", limit, what)
		}
	}
}

func sendBodies(t *testing.T, s server, topic string, bodies ...string) {
	t.Helper()
	p := v5Producer(t, s, topic)
	for _, b := range bodies {
		var err error
		for range 20 {
			if _, err = p.Send(context.Background(), &rmq.Message{Topic: topic, Body: []byte(b)}); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

// receive polls until a message comes.
func receive(t *testing.T, c rmq.SimpleConsumer, invisible, limit time.Duration) *rmq.MessageView {
	t.Helper()
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		if messages, err := c.Receive(context.Background(), 1, invisible); err == nil && len(messages) > 0 {
			return messages[0]
		}
	}
	t.Fatalf("no message within %v", limit)
	return nil
}

// nothingFor polls for a while and fails when a message comes.
func nothingFor(t *testing.T, c rmq.SimpleConsumer, limit time.Duration) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		messages, err := c.Receive(context.Background(), 1, 10*time.Second)
		if err == nil && len(messages) > 0 {
			t.Fatalf("%q came, attempt %d", messages[0].GetBody(), messages[0].GetDeliveryAttempt())
		}
	}
}

// TestV5HandlerFails: FAILURE, and a panic that the handler recovers from, bring the message
// back with attempt 2; SUCCESS after a message was parked ends it at attempt 1.
func TestV5HandlerFails(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	s.createGroup(t, group, 16, false)
	d := newDeliveries()
	c := v5Push(t, s, group, topic, func(mv *rmq.MessageView) (result rmq.ConsumerResult) {
		result = rmq.FAILURE
		defer func() { recover() }()
		n := d.add(mv)
		switch body := string(mv.GetBody()); {
		case strings.HasPrefix(body, "parked"):
			return rmq.SUCCESS
		case n == 1 && strings.HasPrefix(body, "panics"):
			panic("the handler's own fault")
		case n == 1:
			return rmq.FAILURE
		}
		return rmq.SUCCESS
	})
	defer stopLater(c)
	var bodies []string
	for i := range 10 {
		bodies = append(bodies, fmt.Sprintf("fails-%d", i), fmt.Sprintf("panics-%d", i), fmt.Sprintf("parked-%d", i))
	}
	sendBodies(t, s, topic, bodies...)
	d.until(t, 90*time.Second, "every failed message comes a second time", func() bool {
		for _, b := range bodies {
			want := 2
			if strings.HasPrefix(b, "parked") {
				want = 1
			}
			if len(d.get(b)) < want {
				return false
			}
		}
		return true
	})
	for _, b := range bodies {
		for i, del := range d.get(b) {
			if del.attempt != int32(i+1) {
				t.Errorf("%s: delivery %d has attempt %d", b, i+1, del.attempt)
			}
		}
		if n := len(d.get(b)); n > 2 || (n > 1 && strings.HasPrefix(b, "parked")) {
			t.Errorf("%s came %d times", b, n)
		}
	}
}

// TestV5NoAck: a message that nobody acknowledges comes back after its invisible time, not
// before, with attempt 2 and another receipt handle; acknowledged, it does not come again.
func TestV5NoAck(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	s.createGroup(t, group, 16, false)
	sendBodies(t, s, topic, "left alone")
	c := v5Simple(t, s, group, topic)
	defer stopLater(c)
	first := receive(t, c, 10*time.Second, 40*time.Second)
	at := time.Now()
	if first.GetDeliveryAttempt() != 1 {
		t.Errorf("first delivery has attempt %d", first.GetDeliveryAttempt())
	}
	second := receive(t, c, 10*time.Second, 60*time.Second)
	if waited := time.Since(at); waited < 9500*time.Millisecond {
		t.Errorf("came back after %v, invisible time is 10 s", waited)
	}
	if second.GetDeliveryAttempt() != 2 {
		t.Errorf("second delivery has attempt %d", second.GetDeliveryAttempt())
	}
	if first.GetMessageId() != second.GetMessageId() {
		t.Errorf("message id %s became %s", first.GetMessageId(), second.GetMessageId())
	}
	if first.GetReceiptHandle() == second.GetReceiptHandle() {
		t.Error("both deliveries have the same receipt handle")
	}
	if err := c.Ack(context.Background(), second); err != nil {
		t.Errorf("ack: %v", err)
	}
	nothingFor(t, c, 15*time.Second)
}

// TestV5Extends: a changed invisible time keeps the message away for longer than the first one,
// and the handle that the client now holds acknowledges it.
func TestV5Extends(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	s.createGroup(t, group, 16, false)
	sendBodies(t, s, topic, "takes long")
	c := v5Simple(t, s, group, topic)
	defer stopLater(c)
	mv := receive(t, c, 10*time.Second, 40*time.Second)
	if err := c.ChangeInvisibleDuration(mv, 40*time.Second); err != nil {
		t.Fatalf("change invisible duration: %v", err)
	}
	nothingFor(t, c, 18*time.Second)
	if err := c.Ack(context.Background(), mv); err != nil {
		t.Fatalf("ack with the new handle: %v", err)
	}
	nothingFor(t, c, 26*time.Second)
}

// TestV5ConsumerGoesAway: what a consumer took and did not acknowledge goes to another member
// of its group; what it acknowledged does not.
func TestV5ConsumerGoesAway(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	s.createGroup(t, group, 16, false)
	sendBodies(t, s, topic, "one", "two")
	gone := v5Simple(t, s, group, topic)
	acked := receive(t, gone, 10*time.Second, 40*time.Second)
	if err := gone.Ack(context.Background(), acked); err != nil {
		t.Fatalf("ack: %v", err)
	}
	held := receive(t, gone, 10*time.Second, 40*time.Second)
	if err := gone.GracefulStop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	c := v5Simple(t, s, group, topic)
	defer stopLater(c)
	again := receive(t, c, 10*time.Second, 60*time.Second)
	if string(again.GetBody()) != string(held.GetBody()) {
		t.Errorf("%q came, %q was left", again.GetBody(), held.GetBody())
	}
	if err := c.Ack(context.Background(), again); err != nil {
		t.Errorf("ack: %v", err)
	}
	nothingFor(t, c, 12*time.Second)
}

// TestV5DeadLetter: with one retry allowed, a message that always fails is seen twice and then
// lies in the group's dead-letter topic.
func TestV5DeadLetter(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	s.createGroup(t, group, 1, false)
	d := newDeliveries()
	c := v5Push(t, s, group, topic, func(mv *rmq.MessageView) rmq.ConsumerResult {
		d.add(mv)
		return rmq.FAILURE
	})
	defer stopLater(c)
	sendBodies(t, s, topic, "hopeless")
	deadline := time.Now().Add(90 * time.Second)
	for {
		a, err := ask(s.broker, 30, map[string]string{"topic": "%DLQ%" + group, "queueId": "0"}, nil)
		if err == nil && a.Code == 0 && a.ExtFields["offset"] == "1" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no dead letter: %v %+v, deliveries %v", err, a, d.get("hopeless"))
		}
		time.Sleep(200 * time.Millisecond)
	}
	if n := len(d.get("hopeless")); n != 2 {
		t.Errorf("%d deliveries before the dead letter, want 2", n)
	}
}
