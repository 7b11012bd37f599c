package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// server is a whole server on a disk that can be full, with a client.
type server struct {
	*Node
	t *testing.T
	c *transport.Client
}

func startOn(t *testing.T, fs vfs.FS, dir string) *server {
	t.Helper()
	return startWith(t, Options{Roles: All, Data: dir, FS: fs, Log: slog.New(slog.DiscardHandler),
		NamesrvAddr: "127.0.0.1:0", BrokerAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0",
		Settings: config.FromMap(map[string]string{"mappedFileSizeCommitLog": "33554432", "maxHashSlotNum": "10000", "maxIndexNum": "40000"})})
}

func startWith(t *testing.T, o Options) *server {
	t.Helper()
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return &server{n, t, transport.NewClient(transport.ClientOptions{})}
}

func (s *server) stop() {
	s.t.Helper()
	s.c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		s.t.Errorf("stop: %v", err)
	}
}

func (s *server) call(code int32, h remoting.Header, body []byte) *remoting.Command {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, err := s.c.Call(ctx, s.Ready().Broker, code, h, body)
	if err != nil {
		s.t.Fatalf("request %d: %v", code, err)
	}
	return a
}

func (s *server) createTopic(name string) *remoting.Command {
	s.t.Helper()
	return s.call(remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: name, DefaultTopic: names.AutoCreate, ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil)
}

func (s *server) createGroup(name string) *remoting.Command {
	s.t.Helper()
	g := remoting.SubscriptionGroupConfig{GroupName: name, ConsumeEnable: true, RetryQueueNums: 1, RetryMaxTimes: 16}
	return s.call(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g))
}

func (s *server) send(topic, body string) *remoting.Command {
	s.t.Helper()
	return s.call(remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic,
		DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 1, BornTimestamp: time.Now().UnixMilli()}, []byte(body))
}

func (s *server) commitOffset(offset int64) *remoting.Command {
	s.t.Helper()
	return s.call(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "orders", CommitOffset: offset}, nil)
}

func (s *server) pull(offset int64) *remoting.Command {
	s.t.Helper()
	return s.call(remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: "g", Topic: "orders", QueueOffset: offset, MaxMsgNums: 32,
		SysFlag: remoting.PullSubscription, Subscription: "*", ExpressionType: "TAG"}, nil)
}

// taken asks until it is answered with success.
func (s *server) taken(what string, ask func() *remoting.Command) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a := ask()
		if a.Code == remoting.ResSuccess {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d %s", what, a.Code, a.Remark)
		}
	}
}

// refused asks until it is refused for lack of room, since what fits into the last blocks is
// taken.
func (s *server) refused(what string, ask func() *remoting.Command) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		a := ask()
		if a.Code == remoting.ResServiceNotAvailable && strings.Contains(a.Remark, "disk") && strings.Contains(a.Remark, "full") {
			return
		}
		if a.Code != remoting.ResSuccess || time.Now().After(deadline) {
			s.t.Fatalf("%s on a full disk: %d %s", what, a.Code, a.Remark)
		}
	}
}

// A server on a full disk refuses what it would have to store with a sentence, goes on
// reading, starts without a free byte, and stores again by itself when there is room.
func TestFullDisk(t *testing.T) {
	disk, dir := storetest.NewDisk(vfs.Default, 96<<20), t.TempDir()
	s := startOn(t, disk, dir)
	s.taken("create a topic", func() *remoting.Command { return s.createTopic("orders") })
	s.taken("create a group", func() *remoting.Command { return s.createGroup("g") })
	for range 10 {
		s.taken("send", func() *remoting.Command { return s.send("orders", "before") })
	}
	s.taken("commit an offset", func() *remoting.Command { return s.commitOffset(3) })
	for round := range 2 {
		disk.Fill(0)
		n := 0
		s.refused("create a topic", func() *remoting.Command { n++; return s.createTopic(fmt.Sprintf("t%d", n)) })
		s.refused("create a group", func() *remoting.Command { n++; return s.createGroup(fmt.Sprintf("g%d", n)) })
		s.refused("create a topic by sending", func() *remoting.Command { n++; return s.send(fmt.Sprintf("n%d", n), "x") })
		s.refused("commit an offset", func() *remoting.Command { return s.commitOffset(int64(4 + round)) })
		s.refused("delete a topic", func() *remoting.Command {
			return s.call(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: "orders"}, nil)
		})
		s.refused("send", func() *remoting.Command { return s.send("orders", strings.Repeat("x", 5000)) })
		if a := s.pull(0); a.Code != remoting.ResSuccess || len(a.Body) == 0 {
			t.Fatalf("round %d: reading: %d %s", round, a.Code, a.Remark)
		}
		s.stop()
		s = startOn(t, disk, dir)
		s.refused("create a topic after a restart", func() *remoting.Command { n++; return s.createTopic(fmt.Sprintf("t%d", n)) })
		s.refused("send after a restart", func() *remoting.Command { return s.send("orders", "x") })
		if a := s.pull(0); a.Code != remoting.ResSuccess || len(a.Body) == 0 {
			t.Fatalf("round %d: reading after a restart: %d %s", round, a.Code, a.Remark)
		}
		disk.Free()
		s.taken("create a topic with room", func() *remoting.Command { return s.createTopic("later") })
		s.taken("send with room", func() *remoting.Command { return s.send("orders", "after") })
		s.taken("commit an offset with room", func() *remoting.Command { return s.commitOffset(int64(6 + round)) })
	}
	s.stop()
	s = startOn(t, disk, dir)
	defer s.stop()
	a := s.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "orders"}, nil)
	var h remoting.QueryConsumerOffsetResponse
	if err := a.Decode(&h); err != nil || h.Offset != 7 {
		t.Errorf("offset %d %v, want 7", h.Offset, err)
	}
}
