package cli

import (
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestResetFlags: what can't be meant is refused before a server is asked for anything.
func TestResetFlags(t *testing.T) {
	f := startFake(t)
	for flags, want := range map[string]string{
		"":                                      "--to is missing: start, end, or a time; or --to-offset with --queue",
		"--to 1207":                             "--to 1207 would be a time in 1970: it is a time in milliseconds; an offset is --to-offset with --queue",
		"--to-offset 1207":                      "--to-offset needs --queue: an offset is a place in one queue",
		"--to end --to-offset 1207 --queue 3":   "--to and --to-offset: a group goes to one place",
		"--to-offset -1 --queue 3":              `--to-offset is 0 or more, not "-1"`,
		"--to end --queue x":                    `--queue "x" is not BROKER/NUMBER, such as broker-a/3, or a number`,
		"--to end --queue /3":                   `--queue "/3" is not BROKER/NUMBER, such as broker-a/3, or a number`,
		"--to end --queue broker-a/-1":          `--queue "broker-a/-1" is not BROKER/NUMBER, such as broker-a/3, or a number`,
		"--to end --queue broker-a/99999999999": `--queue "broker-a/99999999999" is not BROKER/NUMBER, such as broker-a/3, or a number`,
	} {
		args := append([]string{"admin", "group", "reset", "billing", "orders", "-n", f.addr}, strings.Fields(flags)...)
		if got := runLine(t, 1, args...); got != "bolide: "+want+"\n" {
			t.Errorf("%s: %s", flags, got)
		}
	}
}

// resetting runs resets of a group and returns their tables with single blanks.
func resetting(t *testing.T, at, group, topic string) func(code int, flags ...string) string {
	return func(code int, flags ...string) string {
		t.Helper()
		got := runLine(t, code, append([]string{"admin", "group", "reset", group, topic, "-n", at}, flags...)...)
		var lines []string
		for line := range strings.Lines(got) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return strings.Join(lines, "\n")
	}
}

// holds waits until a topic shows so many messages.
func holds(t *testing.T, at, topic, messages string) {
	t.Helper()
	eventually(t, messages, func() bool {
		return strings.Contains(runLine(t, 0, "admin", "topic", "show", topic, "-n", at), "\n"+messages+"\n")
	})
}

// TestResetToAnOffset: one queue of a group that commits offsets goes where it is told, what a dry
// run shows is what a reset does, and a place outside of the queue is refused with its range.
func TestResetToAnOffset(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "2", "-n", at)
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	if _, errs, code := run(t, "1\n2\n3\n4\n5\n6", "produce", "orders", "-n", at); code != 0 { // three in each queue
		t.Fatal(errs)
	}
	holds(t, at, "orders", "6 messages")
	r := client(t, at)
	b := r.brokerAddr(t)
	r.must(t, b, remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "billing", Topic: "orders", QueueID: 1, CommitOffset: 3}, nil)
	reset := resetting(t, at, "billing", "orders")
	same := func(want, got string) {
		t.Helper()
		if got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	for range 2 { // the first has changed nothing
		same("QUEUE IS WOULD BE IN FLIGHT\nbroker-a/0 not begun 0 0\nbroker-a/1 3 0 0", reset(0, "--to", "start", "--dry-run"))
	}
	same("QUEUE IS WOULD BE IN FLIGHT\nbroker-a/0 not begun 3 0\nbroker-a/1 3 3 0", reset(0, "--to", "end", "--dry-run"))
	same("QUEUE IS WOULD BE IN FLIGHT\nbroker-a/1 3 1 0", reset(0, "--to-offset", "1", "--queue", "1", "--dry-run"))
	same("QUEUE WAS IS\nbroker-a/1 3 1", reset(0, "--to-offset", "1", "--queue", "broker-a/1"))
	same("QUEUE WAS IS\nbroker-a/1 1 0", reset(0, "--to", "2000-01-01T00:00:00Z", "--queue", "1"))
	same("QUEUE WAS IS\nbroker-a/1 0 3", reset(0, "--to-offset", "3", "--queue", "1")) // its end is a place
	same("QUEUE WAS IS\nbroker-a/0 not begun 0\nbroker-a/1 3 0", reset(0, "--to", "start"))
	for _, dry := range []string{"--dry-run=false", "--dry-run"} {
		same("bolide: offset 4 is not in queue broker-a/1 of topic orders: it goes from 0, its first message, to 3, its end", reset(1, "--to-offset", "4", "--queue", "1", dry))
		same("bolide: topic orders has no queue 2 to read on broker-a, which has 2 queues, from 0 on", reset(1, "--to", "end", "--queue", "2", dry))
		same("bolide: topic orders is on broker-a, not on broker-x", reset(1, "--to", "end", "--queue", "broker-x/1", dry))
	}
	// A member that does not subscribe to the topic hides nothing of it.
	r.must(t, b, remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: "c", ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: "billing", ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "users", SubString: "*", ExpressionType: filter.KindTag}}}}}))
	same("QUEUE WAS IS\nbroker-a/1 0 2", reset(0, "--to-offset", "2", "--queue", "1"))
}

// TestResetOfPop: a group that pops goes to the offset too, and what it had in flight is given up.
func TestResetOfPop(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	if _, errs, code := run(t, "m0\nm1\nm2\nm3\nm4", "produce", "orders", "-n", at); code != 0 {
		t.Fatal(errs)
	}
	holds(t, at, "orders", "5 messages")
	runLine(t, 0, "consume", "orders", "--group", "billing", "--max", "2", "-n", at)
	r := client(t, at)
	r.must(t, r.brokerAddr(t), remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: "billing", Topic: "orders", QueueID: -1,
		MaxMsgNums: 2, InvisibleTime: 600_000, PollTime: 10_000, ExpType: filter.KindTag, Exp: "*"}, nil)
	reset := resetting(t, at, "billing", "orders")
	eventually(t, "dry run of what is so", func() bool {
		return reset(0, "--to-offset", "1", "--queue", "0", "--dry-run") == "QUEUE IS WOULD BE IN FLIGHT\nbroker-a/0 2 1 2"
	})
	if got := runLine(t, 0, "admin", "pop", "billing", "-n", at); !strings.Contains(got, "offset 2-3: held by") {
		t.Errorf("the dry run has given up what was in flight:\n%s", got)
	}
	if got := reset(0, "--to-offset", "1", "--queue", "0"); got != "QUEUE WAS IS\nbroker-a/0 2 1" {
		t.Error(got)
	}
	if got := runLine(t, 0, "consume", "orders", "--group", "billing", "--max", "4", "-n", at); got != "m1\nm2\nm3\nm4\n" {
		t.Errorf("after the reset:\n%s", got)
	}
}

// TestResetOfOneBroker: where several brokers have the topic, the queue's broker has to be said.
func TestResetOfOneBroker(t *testing.T) {
	at := startNode(t)
	startBrokerB(t, at)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	reset := resetting(t, at, "billing", "orders")
	if got := reset(1, "--to-offset", "0", "--queue", "0"); got != "bolide: topic orders is on broker-a, broker-b: say of which, such as --queue broker-a/0" {
		t.Error(got)
	}
	if got := reset(0, "--to-offset", "0", "--queue", "broker-b/0"); got != "QUEUE WAS IS\nbroker-b/0 0 0" {
		t.Error(got)
	}
	if got := reset(0, "--to", "end", "--dry-run"); got != "QUEUE IS WOULD BE IN FLIGHT\nbroker-a/0 0 0 0\nbroker-b/0 0 0 0" {
		t.Error(got)
	}
}
