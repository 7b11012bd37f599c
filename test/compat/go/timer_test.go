package compat

import (
	"context"
	"slices"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// TestV5Timers: what is sent for a time comes then and not before, and what was taken back
// does not come.
func TestV5Timers(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "DELAY")
	s.createGroup(t, group, 16, false)
	p := v5Producer(t, s, topic)
	due := time.Now().Add(8 * time.Second)
	send := func(body string) string {
		t.Helper()
		m := &rmq.Message{Topic: topic, Body: []byte(body)}
		m.SetDelayTimestamp(due)
		receipts, err := p.Send(context.Background(), m)
		if err != nil || receipts[0].RecallHandle == "" {
			t.Fatalf("send: %v, %v", receipts, err)
		}
		return receipts[0].RecallHandle
	}
	send("a")
	if _, err := p.Recall(context.Background(), topic, send("taken back")); err != nil {
		t.Fatalf("recall: %v", err)
	}
	send("b")
	c := v5Simple(t, s, group, topic)
	defer c.GracefulStop()
	var got []string
	for end := due.Add(8 * time.Second); time.Now().Before(end); {
		messages, err := c.Receive(context.Background(), 16, 30*time.Second)
		if err != nil {
			continue // not yet
		}
		for _, m := range messages {
			if early := time.Until(due); early > 0 {
				t.Errorf("early by %v", early)
			}
			got = append(got, string(m.GetBody()))
			if err := c.Ack(context.Background(), m); err != nil {
				t.Errorf("ack: %v", err)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("received %q", got)
	}
}
