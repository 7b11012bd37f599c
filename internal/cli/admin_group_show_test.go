package cli

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// client is a raw client of the servers at a name server's address.
func client(t *testing.T, namesrv string) *remote {
	t.Helper()
	r := &remote{namesrv: namesrv}
	r.open()
	t.Cleanup(r.close)
	return r
}

func (r *remote) must(t *testing.T, addr string, code int32, h remoting.Header, body []byte) {
	t.Helper()
	if _, err := r.call(t.Context(), addr, code, h, body); err != nil {
		t.Fatal(err)
	}
}

// brokerAddr is the address of the only broker.
func (r *remote) brokerAddr(t *testing.T) string {
	t.Helper()
	all, err := r.masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[0].addr
}

func show(t *testing.T, code int, at, group string) string {
	t.Helper()
	return runLine(t, code, "admin", "group", "show", group, "-n", at)
}

// TestGroupShowNotBegun: where a group has not begun it has no lag, and what lies there is told
// apart from it.
func TestGroupShowNotBegun(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	runLine(t, 0, "admin", "group", "create", "fresh", "-n", at)
	if got := show(t, 0, at, "fresh"); !strings.Contains(got, "group fresh has not begun") || strings.Contains(got, "lag") {
		t.Errorf("a group of which there is only the name:\n%s", got)
	}
	if _, errs, code := run(t, "1\n2\n3", "produce", "orders", "-n", at); code != 0 {
		t.Fatal(errs)
	}
	r := client(t, at)
	for group, model := range map[string]string{"pushes": remoting.Clustering, "hears": remoting.Broadcasting} {
		r.must(t, r.brokerAddr(t), remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: "c-" + group, ConsumerDataSet: []remoting.ConsumerData{{
			GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: model, ConsumeFromWhere: remoting.ConsumeFromLastOffset,
			SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "orders", SubString: "*", ExpressionType: filter.KindTag}}}}}))
	}
	want := "orders  broker-a/0  3    not begun  -    -          -\n"
	if got := show(t, 0, at, "pushes"); !strings.Contains(got, want) ||
		!strings.Contains(got, "lag 0\nnot begun in 1 queue with 3 messages: ") || !strings.Contains(got, "c-pushes") {
		t.Errorf("a group that subscribes and has committed nothing:\n%s", got)
	}
	if got := show(t, 0, at, "hears"); !strings.Contains(got, "each for itself") || strings.Contains(got, "not begun") {
		t.Errorf("a group whose members keep their own places:\n%s", got)
	}
	// An offset of 0 is a beginning, and all is before the group.
	r.must(t, r.brokerAddr(t), remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "pushes", Topic: "orders"}, nil)
	if got := show(t, 0, at, "pushes"); !strings.Contains(got, "lag 3\n") || strings.Contains(got, "not begun") {
		t.Errorf("a group that has begun at 0:\n%s", got)
	}
}

// TestGroupShowSeesPop: who receives by POP is seen: bolide consume as a member, and one that has
// announced nothing by its request that waits.
func TestGroupShowSeesPop(t *testing.T) {
	at := startNode(t)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"consume", "orders", "--tag", "A", "--group", "billing", "-n", at}, strings.NewReader(""), io.Discard, io.Discard)
	}()
	eventually(t, "group of that name", func() bool { // consume makes it
		return strings.Contains(runLine(t, 0, "admin", "group", "list", "-n", at), "billing")
	})
	eventually(t, "member", func() bool {
		got := show(t, 0, at, "billing")
		return strings.Contains(got, "1 connected to broker-a, clustering, consume_pop\n") && strings.Contains(got, "bolide-consume@") && strings.Contains(got, "orders  A\n")
	})
	cancel()
	if code := <-ended; code != 0 {
		t.Error("code", code)
	}
	eventually(t, "farewell", func() bool { return strings.Contains(show(t, 0, at, "billing"), "nobody is connected to broker-a\n") })

	r := client(t, at)
	broker := r.brokerAddr(t)
	waits, stop := context.WithCancel(t.Context())
	go func() {
		_, err := r.client.Call(waits, broker, remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: "silent", Topic: "orders", QueueID: -1,
			MaxMsgNums: 1, InvisibleTime: 60_000, PollTime: 600_000, ExpType: filter.KindTag, Exp: "*"}, nil)
		ended <- map[bool]int{true: 1}[err == nil]
	}()
	eventually(t, "group of that name", func() bool { return strings.Contains(runLine(t, 0, "admin", "group", "list", "-n", at), "silent") })
	eventually(t, "request that waits", func() bool {
		return strings.Contains(show(t, 0, at, "silent"), "nobody is announced to broker-a; requests that wait for messages there: 1\n")
	})
	stop()
	<-ended
}

// startBrokerB runs a second broker at a name server.
func startBrokerB(t *testing.T, namesrv string) (stop func()) {
	t.Helper()
	n, err := node.Start(t.Context(), node.Options{Roles: node.Roles{Broker: true}, Data: filepath.Join(t.TempDir(), "b"), Namesrvs: []string{namesrv},
		BrokerAddr: "127.0.0.1:0", Settings: []config.Given{{Name: "brokerName", Value: "broker-b"}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := n.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	eventually(t, "broker-b", func() bool {
		info, err := client(t, namesrv).cluster(t.Context())
		return err == nil && len(info.BrokerAddrTable) == 2
	})
	return stop
}

// registerBroker makes a name server know a broker at an address, until gone is called.
func registerBroker(t *testing.T, namesrv, name, addr string, topics ...string) (gone func()) {
	t.Helper()
	r := client(t, namesrv)
	body := remoting.RegisterBrokerBody{}
	body.TopicConfigSerializeWrapper.TopicConfigTable = map[string]remoting.TopicConfig{}
	for _, topic := range topics {
		body.TopicConfigSerializeWrapper.TopicConfigTable[topic] = remoting.TopicConfig{TopicName: topic, Perm: 6, ReadQueueNums: 1, WriteQueueNums: 1, TopicFilterType: "SINGLE_TAG"}
	}
	r.must(t, namesrv, remoting.ReqRegisterBroker, &remoting.RegisterBrokerRequest{BrokerName: name, BrokerAddr: addr, ClusterName: "DefaultCluster"},
		remoting.MarshalRegisterBroker(&body, false))
	return r.close
}

// TestGroupShowIsNotComplete: a broker that is missing is named, whether it was stopped, is gone
// or does not answer, and the lag of the others is said to be that.
func TestGroupShowIsNotComplete(t *testing.T) {
	at := startNode(t)
	stop := startBrokerB(t, at)
	runLine(t, 0, "admin", "topic", "create", "orders", "--queues", "1", "-n", at)
	runLine(t, 0, "admin", "group", "create", "billing", "-n", at)
	r := client(t, at)
	all, err := r.masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		r.must(t, b.addr, remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "billing", Topic: "orders"}, nil)
	}
	if got := show(t, 0, at, "billing"); !strings.Contains(got, "broker-b/0") || !strings.HasSuffix(got, "lag 0\n") {
		t.Errorf("with both:\n%s", got)
	}
	missing := func(says string) {
		t.Helper()
		got := show(t, 1, at, "billing")
		if !strings.Contains(got, "broker-a/0") || !strings.Contains(got, "lag 0, not complete\nbolide: the lag is not complete: ") || !strings.Contains(got, says) {
			t.Errorf("want %s:\n%s", says, got)
		}
	}
	stop()
	missing(": broker-b was stopped at 2")
	if got := runLine(t, 1, "admin", "group", "reset", "billing", "orders", "--to", "start", "-n", at); !strings.Contains(got, "broker-a/0") ||
		!strings.Contains(got, "bolide: what is missing is not reset: broker-b was stopped at 2") {
		t.Errorf("reset:\n%s", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	gone := registerBroker(t, at, "broker-b", nobody, "orders", "%DLQ%billing")
	missing(": broker-b did not answer (nothing listens on " + nobody)
	if got := runLine(t, 1, "admin", "group", "show", "nosuch", "-n", at); !strings.HasPrefix(got, "bolide: no broker that answers has group nosuch: broker-b did not answer") {
		t.Errorf("a group that the missing one may have: %s", got)
	}
	for _, line := range []string{"timer", "txn list", "pop billing", "dlq list", "dlq list billing", "group list", "group reset billing orders --to start"} { // the others are asked all the same
		if got := runLine(t, 1, append([]string{"admin", "-n", at}, strings.Fields(line)...)...); !strings.Contains(got, ": broker-b did not answer (nothing listens on "+nobody) {
			t.Errorf("admin %s: %s", line, got)
		}
	}
	gone()
	eventually(t, "the end of its connection", func() bool { return strings.Contains(show(t, 1, at, "billing"), "broker-b is gone since 2") })
}
