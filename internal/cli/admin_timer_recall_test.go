package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// sentLine is a line of bolide produce --json.
type sentLine struct {
	ID, Broker, RecallHandle string
	Queue                    *int32
	Offset                   *int64
}

func produceJSON(t *testing.T, at, topic string, flags ...string) (line sentLine) {
	t.Helper()
	out, errs, code := run(t, "", append([]string{"produce", topic, "--body", "x", "--json", "-n", at}, flags...)...)
	if err := json.Unmarshal([]byte(out), &line); err != nil || code != 0 {
		t.Fatalf("%d %v: %s%s", code, err, out, errs)
	}
	return line
}

// TestTimerRecall: what waits for its time is taken back with the handle that its sender was
// told, before that time and not after it.
func TestTimerRecall(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "reminders", "--type", "delay", "--queues", "1", "-n", at)
	recall := func(code int, handle string) string {
		t.Helper()
		return runLine(t, code, "admin", "timer", "recall", handle, "-n", at)
	}
	waiting := func() string {
		t.Helper()
		return runLine(t, 0, "admin", "timer", "reminders", "--limit", "0", "-n", at)
	}

	sent := produceJSON(t, at, "reminders", "--delay", "1h")
	h, err := message.ParseRecallHandle(sent.RecallHandle)
	if err != nil || h.UniqKey != sent.ID || h.Broker != sent.Broker || h.Topic != "reminders" || sent.Queue != nil || sent.Offset != nil {
		t.Fatalf("%v: %+v of %+v", err, h, sent)
	}
	eventually(t, "timer", func() bool { return waiting() == "reminders on broker-a: 1 wait\n" })
	want := "message " + sent.ID + " of topic reminders, for " + time.UnixMilli(h.Due).Format(time.DateTime) + ", is taken back\n"
	for range 2 {
		if got := recall(0, sent.RecallHandle); got != want {
			t.Error(got)
		}
	}
	eventually(t, "end of it", func() bool { return waiting() == "nothing waits on broker-a\n" })

	late := produceJSON(t, at, "reminders", "--delay", "50ms")
	eventually(t, "delivery", func() bool {
		return strings.Contains(runLine(t, 0, "admin", "topic", "show", "reminders", "-n", at), "\n1 message\n")
	})
	if got := recall(1, late.RecallHandle); !strings.HasPrefix(got, "bolide: message "+late.ID+" of topic reminders is not taken back: ") ||
		!strings.Contains(got, "too late to recall: the message was for ") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}

	h.Broker = "broker-z"
	if got := recall(1, h.String()); got != "bolide: the message waits on broker-z: name server "+at+" knows no broker broker-z; bolide admin broker list lists those that it does\n" {
		t.Error(got)
	}
	if got := recall(1, sent.ID); !strings.HasPrefix(got, "bolide: the recall handle is malformed: ") || !strings.Contains(got, "bolide produce") {
		t.Error(got)
	}
}

// TestProduceJSON: what is delivered at once has its place, and no handle.
func TestProduceJSON(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	for i := range int64(2) {
		sent := produceJSON(t, at, "orders")
		if len(sent.ID) != 32 || sent.Broker != "broker-a" || sent.Queue == nil || *sent.Queue != 0 || sent.Offset == nil || *sent.Offset != i || sent.RecallHandle != "" {
			t.Errorf("%+v", sent)
		}
	}
}
