package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func TestAdminTimer(t *testing.T) {
	f := startFake(t)
	now := time.Date(2026, 1, 2, 14, 5, 30, 0, time.Local).UnixMilli()
	f.timers = remoting.Timers{Now: now,
		Topics: []remoting.TimerTopic{{Topic: "orders", Count: 7}, {Topic: "users", Count: 1}},
		Next: []remoting.Timer{{Topic: "orders", Due: now + 40_125, MsgID: "01AB", Size: 300},
			{Topic: "users", Due: now - 1_000, MsgID: "01CD", Size: 200, Recalled: true}}}
	out, errs, code := run(t, "", "admin", "timer", "-n", f.addr)
	want := `orders on b: 7 wait
users on b: 1 wait
  2026-01-02 14:06:10.125 (in 40s): 01AB to orders, 300 bytes
  2026-01-02 14:05:29.000 (due): 01CD to users, 200 bytes, is being taken back
`
	if code != 0 || out != want {
		t.Errorf("%d %q\n%s\nwant\n%s", code, errs, out, want)
	}
	out, errs, code = run(t, "", "admin", "timer", "orders", "--limit", "5", "--json", "-n", f.addr)
	var line struct {
		Broker string
		Topics map[string]int64
		Next   []struct {
			ID  string
			Due time.Time
		}
	}
	if err := json.Unmarshal([]byte(out), &line); err != nil || code != 0 || line.Broker != "b" || line.Topics["orders"] != 7 ||
		len(line.Next) != 2 || line.Next[0].ID != "01AB" || line.Next[0].Due.UnixMilli() != now+40_125 {
		t.Errorf("%d %q %s", code, errs, out)
	}
	f.timers = remoting.Timers{Now: now}
	if out, _, code := run(t, "", "admin", "timer", "-n", f.addr); code != 0 || !strings.Contains(out, "nothing waits on b") {
		t.Errorf("%d %s", code, out)
	}
}

// TestAdminTimerLevels: what waits in a delay level is told, and is gone from there when it has
// been delivered.
func TestAdminTimerLevels(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	r := client(t, at)
	broker := r.brokerAddr(t)
	send := func(level string) {
		t.Helper()
		r.must(t, broker, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: "orders", DefaultTopic: "TBW102",
			Properties: "DELAY\x01" + level + "\x02"}, []byte("x"))
	}
	send("1") // a second
	send("17")
	send("17")
	eventually(t, "delivery of the first", func() bool {
		return runLine(t, 0, "admin", "timer", "-n", at) == "delay level 17 on broker-a, of all topics: 2 wait\n"
	})
	if got := runLine(t, 0, "admin", "timer", "orders", "--json", "-n", at); got != `{"broker":"broker-a","topics":{},"next":[],"levels":{"17":2}}`+"\n" {
		t.Error(got)
	}
}
