package compat

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// TestV5Priority: a simple consumer gets the most urgent message first; priorities above the
// highest queue are as urgent as that.
func TestV5Priority(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "PRIORITY")
	s.createGroup(t, group, 16, false)
	p := v5Producer(t, s, topic)
	sent := []int32{3, 0, 7, 1, 6, 2, 5, 4, 900}
	for _, priority := range sent {
		m := &rmq.Message{Topic: topic, Body: strconv.AppendInt(nil, int64(priority), 10)}
		if err := m.SetPriority(priority); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Send(context.Background(), m); err != nil {
			t.Fatalf("send with priority %d: %v", priority, err)
		}
	}
	c := v5Simple(t, s, group, topic)
	defer stopLater(c)
	var got []int32
	for deadline := time.Now().Add(time.Minute); len(got) < len(sent) && time.Now().Before(deadline); {
		messages, err := c.Receive(context.Background(), 1, 30*time.Second)
		if err != nil {
			continue // not yet
		}
		for _, m := range messages {
			n, _ := strconv.Atoi(string(m.GetBody()))
			got = append(got, int32(n))
			if err := c.Ack(context.Background(), m); err != nil {
				t.Errorf("ack: %v", err)
			}
		}
	}
	if want := []int32{7, 900, 6, 5, 4, 3, 2, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
}
