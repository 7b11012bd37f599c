package namesrvrpc

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func TestEveryCodeHasAnAnswer(t *testing.T) {
	s := New(Options{Table: namesrv.New(namesrv.Options{Config: config.NewLive(config.DefaultNamesrv())})})
	for _, c := range remoting.RequestCodes() {
		wanted := c.To&remoting.ToNamesrv != 0 && c.State == remoting.Served
		if s.Serves(c.Code) != wanted {
			t.Errorf("%d %s: in the table %v, in codes.go %v", c.Code, c.Name, s.Serves(c.Code), wanted)
		}
		if !wanted {
			continue
		}
		if _, err := os.Stat(strings.ToLower(c.Name) + ".go"); err != nil {
			t.Errorf("%d %s has no file of its name: %v", c.Code, c.Name, err)
		}
	}
	if len(s.serve) != len(requests) {
		t.Error("a code is in the table twice")
	}
}

func TestTranslate(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int32
		remark string
	}{
		{&said{errNoRoute, "T"}, 17, "No topic route info in name server for the topic: T"},
		{&said{errNoConfig, "n Key: k"}, 22, "No config item, Namespace: n Key: k"},
		{errDisabled, 1, "disable"},
		{errCRC, 1, "crc32 not match"},
		{errProtected, 16, "Can not update config in black list."},
		{fmt.Errorf("%w: b", namesrv.ErrNotRegistered), 1, "register broker failed"},
		{fmt.Errorf("%w: x", namesrv.ErrIllegal), 1, "illegal registration: x"},
		{fmt.Errorf("%w: x", config.ErrUnknown), 1, "unknown setting: x"},
		{&remoting.FieldError{Request: "R", Field: "f"}, 1, "R: header field f is missing"},
		{errors.New("the disk is on fire"), 1, "system error"},
	} {
		if code, remark := translate(c.err); code != c.code || remark != c.remark {
			t.Errorf("%v: %d %q, want %d %q", c.err, code, remark, c.code, c.remark)
		}
	}
}

// peer is a client of a name server, in a bubble of simulated time.
type peer struct {
	t      *testing.T
	client *transport.Client
	table  *namesrv.Table
	stop   func()
}

const addr = "10.0.0.7:9876"

func start(t *testing.T) *peer {
	t.Helper()
	network := transport.NewPipeNetwork()
	l, err := network.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	table := namesrv.New(namesrv.Options{Config: config.NewLive(config.DefaultNamesrv())})
	s := New(Options{Table: table})
	server := transport.NewServer(transport.Options{Handler: s.Handle, OnClose: s.Closed})
	go server.Serve(t.Context(), l)
	p := &peer{t: t, table: table, client: transport.NewClient(transport.ClientOptions{Dial: network.Dial})}
	p.stop = func() {
		p.client.Close()
		_ = server.Shutdown(context.Background())
	}
	return p
}

func (p *peer) call(code int32, h remoting.Header, body []byte) *remoting.Command {
	p.t.Helper()
	r, err := p.client.Call(context.Background(), addr, code, h, body)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *peer) ok(code int32, h remoting.Header, body []byte) *remoting.Command {
	p.t.Helper()
	r := p.call(code, h, body)
	if r.Code != 0 {
		p.t.Fatalf("%s: %d %s", remoting.CodeName(code), r.Code, r.Remark)
	}
	return r
}

func registrationBody(compressed bool, counter int64, topics ...string) ([]byte, int32) {
	b := remoting.RegisterBrokerBody{}
	b.TopicConfigSerializeWrapper.DataVersion.Counter = counter
	b.TopicConfigSerializeWrapper.TopicConfigTable = make(map[string]remoting.TopicConfig)
	for _, name := range topics {
		b.TopicConfigSerializeWrapper.TopicConfigTable[name] = remoting.TopicConfig{TopicName: name, ReadQueueNums: 4, WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG"}
	}
	text := remoting.MarshalRegisterBroker(&b, compressed)
	return text, int32(crc32.ChecksumIEEE(text) & 0x7fffffff)
}

func (p *peer) register(compressed bool, counter int64, topics ...string) *remoting.Command {
	p.t.Helper()
	body, sum := registrationBody(compressed, counter, topics...)
	return p.call(remoting.ReqRegisterBroker, &remoting.RegisterBrokerRequest{BrokerName: "a", BrokerAddr: "10.0.0.1:10911",
		ClusterName: "c", HAServerAddr: "10.0.0.1:10912", Compressed: compressed, BodyCrc32: sum}, body)
}

func TestRegistrationAndRoutes(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t)
			defer p.stop()
			if r := p.register(compressed, 1, "one"); r.Code != 1 || r.Remark != "register broker failed" {
				t.Fatal(r.Code, r.Remark)
			}
			if r := p.register(compressed, 1, "t", "u"); r.Code != 0 {
				t.Fatal(r.Code, r.Remark)
			}
			if r := p.register(compressed, 2, "one"); r.Code != 0 {
				t.Fatal(r.Code, r.Remark)
			}
			standard := p.ok(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "one", AcceptStandardJsonOnly: true}, nil)
			const wanted = `{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"a","cluster":"c","enableActingMaster":false}],` +
				`"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}`
			if string(standard.Body) != wanted {
				t.Fatalf("%s", standard.Body)
			}
			info := p.ok(remoting.ReqGetBrokerClusterInfo, nil, nil)
			if want := `{"brokerAddrTable":{"a":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"a","cluster":"c","enableActingMaster":false}},"clusterAddrTable":{"c":["a"]}}`; string(info.Body) != want {
				t.Fatalf("%s", info.Body)
			}
			if r := p.call(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "none"}, nil); r.Code != 17 {
				t.Fatal(r.Code)
			}
			if r := p.call(remoting.ReqGetRouteInfoByTopic, nil, nil); r.Code != 1 || !strings.Contains(r.Remark, "topic") {
				t.Fatal(r.Code, r.Remark)
			}
		})
	}
}

func TestBrokerOfThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		defer p.stop()
		if _, err := p.table.Register(namesrv.Registration{Cluster: "c", Broker: "a", Address: namesrv.Self(10911),
			Topics: []namesrv.Topic{{Name: "t", ReadQueues: 1, WriteQueues: 1, Perm: 6}}, Whole: true}); err != nil {
			t.Fatal(err)
		}
		r := p.ok(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "t"}, nil)
		if !strings.Contains(string(r.Body), `"10.0.0.7:10911"`) {
			t.Fatalf("the address is not the one that was called: %s", r.Body)
		}
		r = p.ok(remoting.ReqGetSystemTopicListFromNS, nil, nil)
		if want := `{"brokerAddr":"10.0.0.7:10911","topicList":["c","a"]}`; string(r.Body) != want {
			t.Fatalf("%s", r.Body)
		}
	})
}

func TestLifeOfARegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		defer p.stop()
		body, sum := registrationBody(false, 1, "t", "u")
		if r := p.call(remoting.ReqRegisterBroker, &remoting.RegisterBrokerRequest{BrokerName: "a", BrokerAddr: "h:1", ClusterName: "c", BodyCrc32: sum + 1}, body); r.Code != 1 || r.Remark != "crc32 not match" {
			t.Fatal(r.Code, r.Remark)
		}
		p.register(false, 1, "t", "u")
		version := func(counter int64) remoting.QueryDataVersionResponse {
			r := p.ok(remoting.ReqQueryDataVersion, &remoting.QueryDataVersionRequest{BrokerName: "a", BrokerAddr: "10.0.0.1:10911", ClusterName: "c"},
				remoting.Marshal(&remoting.DataVersion{Counter: counter}))
			var h remoting.QueryDataVersionResponse
			if err := r.Decode(&h); err != nil {
				t.Fatal(err)
			}
			return h
		}
		if version(1).Changed || !version(2).Changed {
			t.Fatal("which version is known is wrong")
		}
		p.ok(remoting.ReqBrokerHeartbeat, &remoting.BrokerHeartbeatRequest{ClusterName: "c", BrokerName: "a", BrokerAddr: "10.0.0.1:10911"}, nil)
		var wiped remoting.WipeWritePermOfBrokerResponse
		if err := p.ok(remoting.ReqWipeWritePermOfBroker, &remoting.WipeWritePermOfBrokerRequest{BrokerName: "a"}, nil).Decode(&wiped); err != nil || wiped.WipeTopicCount != 2 {
			t.Fatal(wiped, err)
		}
		var added remoting.AddWritePermOfBrokerResponse
		if err := p.ok(remoting.ReqAddWritePermOfBroker, &remoting.AddWritePermOfBrokerRequest{BrokerName: "a"}, nil).Decode(&added); err != nil || added.AddTopicCount != 2 {
			t.Fatal(added, err)
		}
		members := p.ok(remoting.ReqGetBrokerMemberGroup, &remoting.GetBrokerMemberGroupRequest{ClusterName: "c", BrokerName: "a"}, nil)
		if want := `{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"a","cluster":"c"}}`; string(members.Body) != want {
			t.Fatalf("%s", members.Body)
		}
		p.ok(remoting.ReqDeleteTopicInNamesrv, &remoting.DeleteTopicInNamesrvRequest{Topic: "u"}, nil)
		p.ok(remoting.ReqRegisterTopicInNamesrv, &remoting.RegisterTopicInNamesrvRequest{Topic: "v"},
			remoting.Marshal(&remoting.TopicRouteData{QueueDatas: []remoting.QueueData{{BrokerName: "a", Perm: 6, ReadQueueNums: 1, WriteQueueNums: 1}}}))
		list := p.ok(remoting.ReqGetAllTopicListFromNameServer, nil, nil)
		if want := `{"topicList":["t","v"]}`; string(list.Body) != want {
			t.Fatalf("%s", list.Body)
		}
		for _, code := range []int32{remoting.ReqGetUnitTopicList, remoting.ReqGetHasUnitSubTopicList, remoting.ReqGetHasUnitSubUnunitTopicList} {
			if r := p.ok(code, nil, nil); string(r.Body) != `{"topicList":[]}` {
				t.Fatalf("%s", r.Body)
			}
		}
		if r := p.ok(remoting.ReqGetTopicsByCluster, &remoting.GetTopicsByClusterRequest{Cluster: "c"}, nil); string(r.Body) != `{"topicList":["t","v"]}` {
			t.Fatalf("%s", r.Body)
		}
		p.ok(remoting.ReqUnregisterBroker, &remoting.UnregisterBrokerRequest{BrokerName: "a", BrokerAddr: "10.0.0.1:10911", ClusterName: "c"}, nil)
		if got := p.table.Topics(); len(got) != 0 {
			t.Fatal(got)
		}
		p.register(false, 1, "t", "u")
		p.client.Close()
		synctest.Wait()
		if got := p.table.Topics(); len(got) != 0 {
			t.Fatal("the connection is closed and the routes are still there", got)
		}
	})
}

func TestKVAndConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		defer p.stop()
		p.ok(remoting.ReqPutKVConfig, &remoting.PutKVConfigRequest{Namespace: "ORDER_TOPIC_CONFIG", Key: "t", Value: "a:4"}, nil)
		var h remoting.GetKVConfigResponse
		if err := p.ok(remoting.ReqGetKVConfig, &remoting.GetKVConfigRequest{Namespace: "ORDER_TOPIC_CONFIG", Key: "t"}, nil).Decode(&h); err != nil || h.Value != "a:4" {
			t.Fatal(h, err)
		}
		if r := p.register(false, 1, "t", "u"); string(r.Body) != `{"table":{"t":"a:4"}}` {
			t.Fatalf("a broker is not told of order topics: %s", r.Body)
		}
		if r := p.ok(remoting.ReqGetKVListByNamespace, &remoting.GetKVListByNamespaceRequest{Namespace: "ORDER_TOPIC_CONFIG"}, nil); string(r.Body) != `{"table":{"t":"a:4"}}` {
			t.Fatalf("%s", r.Body)
		}
		p.ok(remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigRequest{Namespace: "ORDER_TOPIC_CONFIG", Key: "t"}, nil)
		if r := p.call(remoting.ReqGetKVConfig, &remoting.GetKVConfigRequest{Namespace: "ORDER_TOPIC_CONFIG", Key: "t"}, nil); r.Code != 22 {
			t.Fatal(r.Code)
		}
		if r := p.call(remoting.ReqGetKVListByNamespace, &remoting.GetKVListByNamespaceRequest{Namespace: "none"}, nil); r.Code != 22 {
			t.Fatal(r.Code)
		}
		if r := p.ok(remoting.ReqGetNamesrvConfig, nil, nil); !strings.Contains(string(r.Body), "enableTopicList=true\n") {
			t.Fatalf("%s", r.Body)
		}
		// The network's addresses are not this machine.
		if r := p.call(remoting.ReqUpdateNamesrvConfig, nil, []byte("enableTopicList=false")); r.Code != 16 {
			t.Fatal(r.Code, r.Remark)
		}
	})
}

func TestUpdateConfig(t *testing.T) {
	live := config.NewLive(config.DefaultNamesrv())
	s := New(Options{Table: namesrv.New(namesrv.Options{Config: live})})
	for _, c := range []struct {
		body string
		code int32
	}{
		{"enableTopicList=false\nenableAllTopicList=false", 0},
		{"kvConfigPath=/tmp/x", 16},
		{"noSuchKey=1", 1},
		{"scanNotActiveBrokerInterval=fast", 1},
		{"enableTopicList=true\nscanNotActiveBrokerInterval=-1", 1},
	} {
		_, err := s.updateNamesrvConfig(&transport.Request{Command: remoting.Command{Body: []byte(c.body)}})
		code := int32(0)
		if err != nil {
			code, _ = translate(err)
		}
		if code != c.code {
			t.Errorf("%q: %d (%v), want %d", c.body, code, err, c.code)
		}
	}
	if live.Get().EnableTopicList {
		t.Error("a refused change has changed something, or an accepted one nothing")
	}
	if _, err := s.getAllTopicListFromNameserver(nil); !errors.Is(err, errDisabled) {
		t.Error(err)
	}
}
