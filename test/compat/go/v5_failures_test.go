package compat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// The failure paths of article 001: what its two programs meet when a handler fails, a process
// dies or an acknowledgement never comes. They wait for real invisible times, side by side.

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

// take receives a message and acknowledges it.
func take(t *testing.T, c rmq.SimpleConsumer, limit time.Duration) *rmq.MessageView {
	t.Helper()
	m := receive(t, c, 60*time.Second, limit)
	if err := c.Ack(context.Background(), m); err != nil {
		t.Errorf("ack: %v", err)
	}
	return m
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
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
	attempts := gather[int32]()
	v5Push(t, s, group, topic, func(mv *rmq.MessageView) (result rmq.ConsumerResult) {
		result = rmq.FAILURE
		defer func() { recover() }()
		n := attempts.add(string(mv.GetBody()), mv.GetDeliveryAttempt())
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
	var bodies []string
	for i := range 10 {
		bodies = append(bodies, fmt.Sprintf("fails-%d", i), fmt.Sprintf("panics-%d", i), fmt.Sprintf("parked-%d", i))
	}
	sendBodies(t, s, topic, bodies...)
	want := func(body string) []int32 {
		if strings.HasPrefix(body, "parked") {
			return []int32{1}
		}
		return []int32{1, 2}
	}
	all := attempts.await(t, 90*time.Second, "every failed message comes a second time", func(all map[string][]int32) bool {
		return !slices.ContainsFunc(bodies, func(b string) bool { return len(all[b]) < len(want(b)) })
	})
	for _, b := range bodies {
		if !slices.Equal(all[b], want(b)) {
			t.Errorf("%s came with the attempts %v", b, all[b])
		}
	}
}

// TestV5NoAck: a message that nobody acknowledges comes back after its invisible time, not
// before, with attempt 2 and another receipt handle; acknowledged, it does not come again.
func TestV5NoAck(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
	sendBodies(t, s, topic, "left alone")
	c := v5Simple(t, s, group, topic)
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
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
	sendBodies(t, s, topic, "takes long")
	c := v5Simple(t, s, group, topic)
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
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
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
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 1, false)
	attempts := gather[int32]()
	v5Push(t, s, group, topic, func(mv *rmq.MessageView) rmq.ConsumerResult {
		attempts.add(string(mv.GetBody()), mv.GetDeliveryAttempt())
		return rmq.FAILURE
	})
	sendBodies(t, s, topic, "hopeless")
	s.awaitDeadLetter(t, group)
	if got := attempts.all()["hopeless"]; !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("attempts %v before the dead letter, want 1 and 2", got)
	}
}
