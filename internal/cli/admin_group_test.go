package cli

import (
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestGroupCreateKeepsWhatIsNotSaid: a group that is there gets what the flags say, and keeps what
// they do not, what other tools have set included.
func TestGroupCreateKeepsWhatIsNotSaid(t *testing.T) {
	at := startNode(t)
	create := func(want string, flags ...string) {
		t.Helper()
		if got := runLine(t, 0, append([]string{"admin", "group", "create", "billing", "-n", at}, flags...)...); got != want+"\n" {
			t.Errorf("%q: %swant %s", flags, got, want)
		}
	}
	create("group billing, 3 attempts on broker-a", "--max-attempts", "3")
	r := client(t, at)
	b := r.brokerAddr(t)
	table, err := r.groups(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	g := table["billing"]
	g.ConsumeEnable, g.RetryQueueNums = false, 2
	g.GroupRetryPolicy = remoting.GroupRetryPolicy{Type: remoting.RetryExponential, ExponentialRetryPolicy: &remoting.ExponentialRetryPolicy{Initial: 1000, Max: 9000, Multiplier: 2}}
	r.must(t, b, remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g))
	create("group billing is on broker-a already, 3 attempts, consumption is off: nothing is changed")
	create("group billing on broker-a: fifo, was not", "--fifo")
	create("group billing on broker-a: 5 attempts, were 3; not fifo, was", "--max-attempts", "5", "--fifo=false")
	create("group billing on broker-a: lite topics of chats, were of none", "--lite", "chats")
	create("group billing is on broker-a already, 5 attempts, lite topics of chats, consumption is off: nothing is changed")
	if table, err = r.groups(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	after := table["billing"]
	if after.ConsumeEnable || after.RetryQueueNums != 2 || after.RetryMaxTimes != 4 || after.ConsumeMessageOrderly ||
		after.GroupRetryPolicy.Type != remoting.RetryExponential || after.GroupRetryPolicy.ExponentialRetryPolicy == nil || after.GroupRetryPolicy.ExponentialRetryPolicy.Max != 9000 {
		t.Errorf("%+v", after)
	}
	if got := show(t, 0, at, "billing"); !strings.HasPrefix(got, "group billing on broker-a: 5 attempts, lite topics of chats, consumption is off\n") {
		t.Error(got)
	}
}

// TestGroupDelete: a group goes with its offsets, while nobody is connected who would make it again.
func TestGroupDelete(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	r := client(t, at)
	b := r.brokerAddr(t)
	r.must(t, b, remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "billing", Topic: "orders"}, nil)
	r.must(t, b, remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: "c", ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: "billing", ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "orders", SubString: "*", ExpressionType: filter.KindTag}}}}}))
	remove := func(code int) string {
		t.Helper()
		return runLine(t, code, "admin", "group", "delete", "billing", "-n", at)
	}
	if got := remove(1); got != "bolide: group billing has 1 member connected to broker-a, whose next heartbeat would make it again: stop its members first\n" {
		t.Error(got)
	}
	r.must(t, b, remoting.ReqUnregisterClient, &remoting.UnregisterClientRequest{ClientID: "c", ConsumerGroup: "billing"}, nil)
	if got := remove(0); got != "group billing deleted\n" {
		t.Error(got)
	}
	if got := remove(1); got != "bolide: group billing does not exist; bolide admin group list lists those that do\n" {
		t.Error(got)
	}
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	if got := show(t, 0, at, "billing"); !strings.Contains(got, "group billing has not begun") {
		t.Errorf("its offsets are there:\n%s", got)
	}
}
