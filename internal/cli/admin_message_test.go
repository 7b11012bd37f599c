package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestMessage: a message is found by each of its keys and by its id, on whatever broker it is.
func TestMessage(t *testing.T) {
	at := startNode(t)
	stop := startBrokerB(t, at)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	ids := strings.Fields(runLine(t, 0, "produce", "orders", "--body", "one", "--key", "k1", "--key", "both", "-n", at) +
		runLine(t, 0, "produce", "orders", "--body", "two", "--key", "k2", "--key", "both", "-n", at))
	find := func(code int, key string) string {
		t.Helper()
		return runLine(t, code, "admin", "message", "orders", key, "-n", at)
	}
	for key, want := range map[string]string{"k1": "one", "k2": "two", ids[0]: "one", ids[1]: "two"} {
		eventually(t, "index of "+key, func() bool {
			_, errs, code := run(t, "", "admin", "message", "orders", key, "-n", at)
			return code == 0 || !strings.Contains(errs, "has no message with the key or id "+key)
		})
		var m struct {
			ID, Topic, Broker, Body string
			Stored                  time.Time
		}
		if err := json.Unmarshal([]byte(find(0, key)), &m); err != nil || m.Body != want || m.Topic != "orders" || !strings.HasPrefix(m.Broker, "broker-") ||
			time.Since(m.Stored) > time.Hour || m.ID != ids[map[string]int{"one": 0, "two": 1}[want]] {
			t.Errorf("%s: %+v, %v", key, m, err)
		}
	}
	if got := find(0, "both"); strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
	if got := find(1, "none"); got != "bolide: topic orders has no message with the key or id none\n" {
		t.Error(got)
	}
	stop()
	if got := find(1, "both"); !strings.Contains(got, "bolide: not every broker was asked: broker-b was stopped at ") {
		t.Error(got)
	}
}
