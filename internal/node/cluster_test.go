package node_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

const patience = time.Minute

func startNode(t *testing.T, roles node.Roles, namesrvs []string, settings map[string]string) node.Ready {
	t.Helper()
	all := map[string]string{"mappedFileSizeCommitLog": "33554432", "maxHashSlotNum": "10000", "maxIndexNum": "40000"}
	for key, value := range settings {
		all[key] = value
	}
	if !roles.Broker {
		all = nil
	}
	n, err := node.Start(t.Context(), node.Options{Roles: roles, Data: t.TempDir(), Namesrvs: namesrvs, Settings: config.FromMap(all),
		NamesrvAddr: "127.0.0.1:0", BrokerAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return n.Ready()
}

// asking returns a function that sends a request to an address and waits for the answer.
func asking(t *testing.T) func(addr string, code int32, h remoting.Header, body []byte) *remoting.Command {
	c := transport.NewClient(transport.ClientOptions{})
	t.Cleanup(c.Close)
	return func(addr string, code int32, h remoting.Header, body []byte) *remoting.Command {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		a, err := c.Call(ctx, addr, code, h, body)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// TestDiffNewTopicsAreSpread is R109: a topic that a send makes on one broker is soon made by
// the others that make topics from the template, whoever is told of it first, and by no
// other. Apache's make it when a message comes to them, which no client then sends.
func TestDiffNewTopicsAreSpread(t *testing.T) {
	first := startNode(t, node.Roles{Namesrv: true, Broker: true}, nil, nil)
	second := startNode(t, node.Roles{Broker: true}, []string{first.Namesrv}, map[string]string{"brokerName": "broker-b"})
	startNode(t, node.Roles{Broker: true}, []string{first.Namesrv}, map[string]string{"brokerName": "broker-c", "autoCreateTopicEnable": "false"})
	call := asking(t)
	brokers := func(topic string) (list []string) {
		a := call(first.Namesrv, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: topic}, nil)
		var route remoting.TopicRouteData
		if a.Code == remoting.ResSuccess {
			if err := remoting.Unmarshal(a.Body, &route); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range route.BrokerDatas {
			list = append(list, b.BrokerName)
		}
		slices.Sort(list)
		return list
	}
	until := func(topic string, want ...string) {
		t.Helper()
		for deadline := time.Now().Add(patience); !slices.Equal(brokers(topic), want); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s is on %v, want %v", topic, brokers(topic), want)
			}
		}
	}
	until("SELF_TEST_TOPIC", "broker-a", "broker-b", "broker-c")
	until(names.AutoCreate, "broker-a", "broker-b")
	for addr, topic := range map[string]string{first.Broker: "made-on-a", second.Broker: "made-on-b"} {
		a := call(addr, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic,
			DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 3, BornTimestamp: time.Now().UnixMilli()}, []byte("x"))
		if a.Code != remoting.ResSuccess {
			t.Fatalf("%d %s", a.Code, a.Remark)
		}
		if !slices.Contains(brokers(topic), map[string]string{first.Broker: "broker-a", second.Broker: "broker-b"}[addr]) {
			t.Errorf("%s is not routed when the send is answered", topic)
		}
		until(topic, "broker-a", "broker-b")
	}
	// What an administrator makes on one broker stays there.
	a := call(first.Broker, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: "administered", DefaultTopic: names.AutoCreate,
		ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil)
	if a.Code != remoting.ResSuccess {
		t.Fatal(a.Remark)
	}
	call(first.Broker, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: "made-later",
		DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 3, BornTimestamp: time.Now().UnixMilli()}, []byte("x"))
	until("made-later", "broker-a", "broker-b") // so what came before has been looked at
	if got := brokers("administered"); !slices.Equal(got, []string{"broker-a"}) {
		t.Errorf("administered is on %v", got)
	}
}

// R113: settings of a running broker reach the name servers at once: what the broker allows
// as a whole, and name servers that it has not registered with so far.
func TestChangedSettingsReachTheNameServers(t *testing.T) {
	first := startNode(t, node.Roles{Namesrv: true, Broker: true}, nil, nil)
	other := startNode(t, node.Roles{Namesrv: true}, nil, nil)
	ask := asking(t)
	perm := func(namesrv string) int32 { // of a topic that everybody may read and write; -1 = there is no route
		a := ask(namesrv, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "SELF_TEST_TOPIC"}, nil)
		var route remoting.TopicRouteData
		if a.Code != remoting.ResSuccess {
			return -1
		}
		if err := remoting.Unmarshal(a.Body, &route); err != nil {
			t.Fatal(err)
		}
		return route.QueueDatas[0].Perm
	}
	if perm(first.Namesrv) != 6 || perm(other.Namesrv) != -1 {
		t.Fatal("known before it is told")
	}
	settings := "brokerPermission=4\nnamesrvAddr=" + other.Namesrv
	if a := ask(first.Broker, remoting.ReqUpdateBrokerConfig, nil, []byte(settings)); a.Code != 0 {
		t.Fatal(a.Remark)
	}
	if perm(first.Namesrv) != 4 {
		t.Error("the name server of the same process is not told")
	}
	for deadline := time.Now().Add(patience); perm(other.Namesrv) != 4; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the new name server has %d", perm(other.Namesrv))
		}
	}
}
