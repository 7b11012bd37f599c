package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/node"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestTopicShow: what a topic is on each broker, what its queues hold, and who consumes it.
func TestTopicShow(t *testing.T) {
	at := startNode(t)
	startBrokerB(t, at)
	runLine(t, 0, "admin", "topic", "create", "orders", "--type", "fifo", "--queues", "1", "-n", at)
	for range 2 {
		runLine(t, 0, "produce", "orders", "--body", "x", "--message-group", "g", "-n", at) // to one queue of one broker
	}
	runLine(t, 0, "consume", "orders", "--group", "billing", "--max", "2", "-n", at)
	r := client(t, at)
	all, err := r.masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.must(t, all[1].addr, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: "orders", DefaultTopic: "TBW102",
		ReadQueueNums: 2, WriteQueueNums: 1, Perm: permRead, TopicFilterType: "SINGLE_TAG"}, nil)
	got := runLine(t, 0, "admin", "topic", "show", "orders", "-n", at)
	for _, want := range []string{
		"topic orders on broker-a: type fifo, 1 queue, read, write\n",
		"topic orders on broker-b: type fifo, 2 queues to read, 1 to write, read\n",
		"QUEUE       FIRST  END  MESSAGES  LAST STORED\n",
		"0    0         -\n",
		"2 messages\ngroups: billing\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Count(got, "\nbroker-") != 3 {
		t.Errorf("queues:\n%s", got)
	}
	if got := runLine(t, 1, "admin", "topic", "show", "nosuch", "-n", at); got != "bolide: topic nosuch does not exist; bolide admin topic create nosuch makes it\n" {
		t.Error(got)
	}
}

// TestChangesNameWhoIsMissing: a broker that is gone does not get a change, or has the one that its
// topics are on, and this is said.
func TestChangesNameWhoIsMissing(t *testing.T) {
	at := startNode(t)
	stop := startBrokerB(t, at)
	runLine(t, 0, "admin", "topic", "create", "orders", "-n", at)
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	stop()
	for _, c := range []struct {
		code       int
		line, want string
	}{
		{1, "admin topic create more", "topic more, type normal, 8 queues on broker-a\nbolide: topic more is not on all brokers: broker-b was stopped at "},
		{1, "admin group create other", "group other, 17 attempts on broker-a\nbolide: group other is not on all brokers: broker-b was stopped at "},
		{1, "admin topic show orders", "\nbolide: this is not all of the topic: broker-b was stopped at "},
		{1, "admin group delete billing", "bolide: group billing is not deleted everywhere: broker-b was stopped at "},
		{1, "admin topic delete orders", "bolide: topic orders is not deleted everywhere: broker-b was stopped at "},
		{1, "consume nosuch", "bolide: no broker that is there has topic nosuch: broker-b was stopped at "},
		{1, "admin group reset other nosuch --to end", "bolide: no broker that is there has topic nosuch: broker-b was stopped at "},
	} {
		if got := runLine(t, c.code, append(strings.Fields(c.line), "-n", at)...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.line, got)
		}
	}
	if got := runLine(t, 0, "admin", "topic", "list", "-n", at); got != "more\n" {
		t.Errorf("topics of the broker that is there: %s", got)
	}
}

// TestTopicDeleteAtEveryNameServer: brokers do not tell name servers of deleted topics, so all that
// are named are told.
func TestTopicDeleteAtEveryNameServer(t *testing.T) {
	at := startNode(t)
	n, err := node.Start(t.Context(), node.Options{Roles: node.Roles{Namesrv: true}, Data: filepath.Join(t.TempDir(), "n"), NamesrvAddr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	other := n.Ready().Namesrv
	runLine(t, 0, "admin", "topic", "create", "orders", "-n", at)
	runLine(t, 0, "admin", "topic", "create", "more", "-n", at)
	registerBroker(t, other, "broker-b", "127.0.0.1:1", "orders", "stays") // one alone would be an addition to what it had
	if got := runLine(t, 0, "admin", "topic", "delete", "orders", "-n", at+";"+other); got != "topic orders deleted\n" {
		t.Error(got)
	}
	if got := runLine(t, 0, "admin", "topic", "list", "-n", other); got != "stays\n" {
		t.Errorf("the other has %s", got)
	}
	if err := n.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if got := runLine(t, 1, "admin", "topic", "delete", "more", "-n", at+";"+other); !strings.HasPrefix(got,
		"bolide: topic more is not deleted everywhere: name server "+other+" did not answer (nothing listens on ") {
		t.Error(got)
	}
}
