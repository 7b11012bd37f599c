package compat

import (
	"context"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// TestV5TopicTypes: a topic takes messages of its own type alone.
func TestV5TopicTypes(t *testing.T) {
	t.Parallel()
	s := target(t)
	kinds := map[string]func(*rmq.Message){
		"NORMAL":   func(*rmq.Message) {},
		"FIFO":     func(m *rmq.Message) { m.SetMessageGroup("g") },
		"DELAY":    func(m *rmq.Message) { m.SetDelayTimestamp(time.Now().Add(time.Second)) },
		"PRIORITY": func(m *rmq.Message) { m.SetPriority(1) },
		"LITE":     func(m *rmq.Message) { m.SetLiteTopic("l") },
	}
	for _, of := range []string{"NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE"} {
		topic := fresh(t, "topic")
		s.createTopic(t, topic, of)
		p := v5Producer(t, s, topic)
		for kind, set := range kinds {
			m := &rmq.Message{Topic: topic, Body: []byte("x")}
			set(m)
			if _, err := p.Send(context.Background(), m); (err == nil) != (kind == of) {
				t.Errorf("a %s message to a %s topic: %v", kind, of, err)
			}
		}
	}
}
