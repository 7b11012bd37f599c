package compat

import (
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
	topic, group := s.newTopic(t, "PRIORITY"), s.newGroup(t, 16, false)
	p := v5Producer(t, s, topic)
	sent := []int32{3, 0, 7, 1, 6, 2, 5, 4, 900}
	for _, priority := range sent {
		m := &rmq.Message{Topic: topic, Body: strconv.AppendInt(nil, int64(priority), 10)}
		if err := m.SetPriority(priority); err != nil {
			t.Fatal(err)
		}
		v5Send(t, p, m)
	}
	c := v5Simple(t, s, group, topic)
	var got []string
	for range sent {
		got = append(got, string(take(t, c, time.Minute).GetBody()))
	}
	if want := []string{"7", "900", "6", "5", "4", "3", "2", "1", "0"}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
}
