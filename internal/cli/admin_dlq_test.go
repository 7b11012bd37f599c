package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/node"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// startNode runs a server and returns its name server's address.
func startNode(t *testing.T) string {
	t.Helper()
	n, err := node.Start(t.Context(), node.Options{Roles: node.All, Data: filepath.Join(t.TempDir(), "data"), NamesrvAddr: "127.0.0.1:0",
		BrokerAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n.Ready().Namesrv
}

// run runs a command line and returns what it printed.
func runLine(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := Main(t.Context(), args, strings.NewReader(""), &out, &errs); got != code {
		t.Fatalf("%v: code %d, %s%s", args, got, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

// TestDeadLettersByCommand is R126: dead letters are listed with reason, attempts and
// origin, shown, and redriven by id, by range and all, each once.
func TestDeadLettersByCommand(t *testing.T) {
	at := startNode(t)
	if got := runLine(t, 0, "admin", "dlq", "list", "-n", at); got != "no group has dead letters\n" {
		t.Error(got)
	}
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	ids := buryMany(t, at, "orders", "billing", 5)
	dlq := func(code int, args ...string) string {
		t.Helper()
		return runLine(t, code, append([]string{"admin", "dlq"}, append(args, "-n", at)...)...)
	}
	counts := func(want string) {
		t.Helper()
		// The last two words are the day and the time.
		if got := strings.Fields(dlq(0, "list")); len(got) != 11 || strings.Join(got[:9], " ") != "GROUP DEAD LETTERS NOT REDRIVEN NEWEST billing "+want {
			t.Errorf("of all groups: %q", got)
		}
	}
	counts("5 5")
	if got := dlq(1, "list", "--max", "2"); !strings.Contains(got, "--max is for the dead letters of one group") {
		t.Error(got)
	}
	list := dlq(0, "list", "billing")
	if strings.Count(list, "orders") != 5 || strings.Count(list, "  asked  ") != 5 || strings.Count(list, "  no  ") != 5 || !strings.Contains(list, ids[4]) {
		t.Errorf("list:\n%s", list)
	}
	if got := dlq(0, "list", "billing", "--max", "2"); strings.Count(got, "orders") != 2 {
		t.Errorf("two of them:\n%s", got)
	}
	show := dlq(0, "show", "billing", "--id", ids[1])
	if strings.Count(show, "\n") != 1 || !strings.Contains(show, `"body":"message 1"`) || !strings.Contains(show, `"RETRY_TOPIC":"orders"`) {
		t.Errorf("show:\n%s", show)
	}
	dlq(1, "show", "billing", "--id", "nobody")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--id", ids[1]}, "1 redriven, 0 were before"},
		{[]string{"--dry-run"}, "4 to be redriven, 1 were before"},
		{[]string{"--from", "1", "--to", "2"}, "1 redriven, 1 were before"},
		{[]string{"--rate", "0"}, "3 redriven, 2 were before"},
		{nil, "0 redriven, 5 were before"},
	} {
		if got := dlq(0, append([]string{"redrive", "billing"}, c.args...)...); strings.TrimSpace(got) != c.want {
			t.Errorf("%v: %s", c.args, got)
		}
	}
	counts("5 0")
	if list := dlq(0, "list", "billing"); strings.Count(list, "  yes  ") != 5 {
		t.Errorf("list afterwards:\n%s", list)
	}
	for _, verb := range []string{"list", "show", "redrive"} {
		if got := dlq(1, verb, "nobody"); !strings.Contains(got, "group nobody does not exist") {
			t.Errorf("%s of no group: %s", verb, got)
		}
		if got := dlq(1, verb, "billing", "--from", "9", "--to", "3"); !strings.Contains(got, "--to 3 is before --from 9") {
			t.Errorf("%s of no range: %s", verb, got)
		}
		if got := dlq(0, verb, "billing", "--from", "9"); got != "group billing has no such dead letters\n" {
			t.Errorf("%s behind the last: %s", verb, got)
		}
	}
	runLine(t, 0, "admin", "group", "create", "lucky", "-n", at)
	for _, verb := range []string{"list", "show", "redrive"} {
		if got := dlq(0, verb, "lucky"); got != "group lucky has no dead letters\n" {
			t.Errorf("%s of a group without: %s", verb, got)
		}
	}
}

// TestDeadLettersOfManyBrokers: the counts of several brokers are one, a server that does not
// count is asked for the extents of the topics, and a broker that is missing is named.
func TestDeadLettersOfManyBrokers(t *testing.T) {
	f := startFake(t)
	f.dead = map[string]remoting.TopicOffset{"%DLQ%g": {MinOffset: 2, MaxOffset: 9, LastUpdateTimestamp: time.Date(2026, 1, 2, 14, 5, 30, 0, time.Local).UnixMilli()}, "%DLQ%none": {MinOffset: 4, MaxOffset: 4}}
	out, errs, code := run(t, "", "admin", "dlq", "list", "-n", f.addr)
	if want := "GROUP  DEAD LETTERS  NOT REDRIVEN  NEWEST\ng      7             -             2026-01-02 14:05:30\n"; out != want || code != 0 {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	at := startNode(t)
	stop := startBrokerB(t, at)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	buryMany(t, at, "orders", "billing", 2)
	stop()
	got := runLine(t, 1, "admin", "dlq", "list", "-n", at)
	if !strings.Contains(got, "billing  2 ") || !strings.Contains(got, "bolide: the counts are not complete: broker-b was stopped at 2") {
		t.Errorf("without the other:\n%s", got)
	}
	for _, line := range []string{"list billing", "show billing", "redrive billing --dry-run"} {
		got := runLine(t, 1, append([]string{"admin", "dlq", "-n", at}, strings.Fields(line)...)...)
		if strings.Count(got, "\n") < 2 || !strings.Contains(got, "bolide: these are not all dead letters: broker-b was stopped at 2") {
			t.Errorf("%s without the other:\n%s", line, got)
		}
	}
}

// TestTopicsAreChangedByWhatIsSaid: a topic that is there keeps what no flag says.
func TestTopicsAreChangedByWhatIsSaid(t *testing.T) {
	at := startNode(t)
	for _, c := range []struct{ line, says string }{
		{"fo --type fifo --queues 3", "topic fo, type fifo, 3 queues on broker-a"},
		{"fo", "topic fo is on broker-a already, type fifo, 3 queues: nothing is changed"},
		{"fo --queues 5", "topic fo on broker-a: 5 queues, were 3"},
		{"fo --type normal", "topic fo on broker-a: type normal, was fifo"},
		{"fo --type normal --queues 5", "type normal, 5 queues: nothing is changed"},
		{"li --type LITE", "topic li, type lite, 8 queues"},
		{"pr --type priority", "topic pr, type priority, 8 queues"},
	} {
		if got := runLine(t, 0, append([]string{"admin", "topic", "create", "-n", at}, strings.Fields(c.line)...)...); !strings.Contains(got, c.says) {
			t.Errorf("%s: %s", c.line, got)
		}
	}
	if got := runLine(t, 1, "admin", "topic", "create", "mi", "--type", "mixed", "-n", at); !strings.Contains(got, "MIXED") {
		t.Errorf("mixed, where it is off: %s", got)
	}
}

// TestRedriveKeepsItsRate: the messages of a second are spread over it.
func TestRedriveKeepsItsRate(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	buryMany(t, at, "orders", "billing", 6)
	began := time.Now()
	runLine(t, 0, "admin", "dlq", "redrive", "billing", "--rate", "20", "-n", at)
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("6 messages at 20 a second took %v", took)
	}
}

// TestGroupsByCommand looks at a group and resets it.
func TestGroupsByCommand(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	for i := range 3 {
		runLine(t, 0, "produce", "orders", "--body", fmt.Sprint(i), "-n", at)
	}
	runLine(t, 0, "consume", "orders", "--group", "billing", "--max", "3", "-n", at)
	if got := runLine(t, 0, "admin", "group", "list", "-n", at); !strings.Contains(got, "billing\n") || strings.Contains(got, "TOOLS_CONSUMER") {
		t.Errorf("list: %s", got)
	}
	deadline := time.Now().Add(30 * time.Second)
	for !strings.Contains(runLine(t, 0, "admin", "group", "show", "billing", "-n", at), "lag 0") {
		if time.Now().After(deadline) {
			t.Fatal("the group has lag")
		}
	}
	got := runLine(t, 0, "admin", "group", "reset", "billing", "orders", "--to", "start", "-n", at)
	if !strings.Contains(strings.Join(strings.Fields(got), " "), "/0 3 0") {
		t.Errorf("reset: %s", got)
	}
	if got := runLine(t, 0, "admin", "group", "show", "billing", "-n", at); !strings.Contains(got, "lag 3") {
		t.Errorf("show: %s", got)
	}
	for _, line := range []string{"show nobody", "reset nobody orders --to start"} {
		if got := runLine(t, 1, append([]string{"admin", "group", "-n", at}, strings.Fields(line)...)...); !strings.HasPrefix(got, "bolide: group nobody does not exist") {
			t.Errorf("group %s: %s", line, got)
		}
	}
	if got := runLine(t, 1, "admin", "timer", "nothere", "-n", at); got != "bolide: topic nothere does not exist\n" {
		t.Errorf("timers of no topic: %s", got)
	}
	for _, to := range []string{"", "tomorrow", "99999999999999", "-5"} {
		runLine(t, 1, "admin", "group", "reset", "billing", "orders", "--to", to, "-n", at)
	}
}

// buryMany sends messages and gives each back as a dead letter of the group.
func buryMany(t *testing.T, at, topic, group string, n int) (ids []string) {
	t.Helper()
	r := &remote{namesrv: at}
	r.open()
	defer r.close()
	ctx := t.Context()
	route, err := r.route(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	broker := route[0]
	ask := func(code int32, h, answer remoting.Header, body string) {
		t.Helper()
		a, err := r.call(ctx, broker.addr, code, h, []byte(body))
		if err == nil && answer != nil {
			err = a.Decode(answer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		var sent remoting.SendMessageResponse
		id := message.NewUniqueID()
		ask(remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic, DefaultTopic: "TBW102",
			Properties: "UNIQ_KEY\x01" + id + "\x02"}, &sent, fmt.Sprint("message ", i))
		_, place, err := message.ParseOffsetID(sent.MsgID)
		if err != nil {
			t.Fatal(err)
		}
		ask(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Group: group, Offset: place, DelayLevel: -1}, nil, "")
		ids = append(ids, id)
	}
	var end remoting.GetMaxOffsetResponse
	for deadline := time.Now().Add(30 * time.Second); end.Offset < int64(n); {
		ask(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: "%DLQ%" + group}, &end, "")
		if time.Now().After(deadline) {
			t.Fatalf("%d dead letters of %d", end.Offset, n)
		}
	}
	return ids
}
