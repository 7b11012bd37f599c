// Package suspended measures what requests that wait cost the real server: private memory
// for each, while tens of thousands wait over Remoting or over gRPC.
//
// Invariants: the clients are in this process and the server in its own, so that only the
// server is measured; the figures are the aims of docs/performance.md.
// Neighbours: test/servers starts the binary.
package suspended

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
	"github.com/bolidemq/bolide/test/servers"
)

const topic, group = "suspended", "waiters"

// server is a started binary with a topic.
func server(t *testing.T) *servers.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("tens of thousands of requests wait for a while; runs without -short")
	}
	if runtime.GOOS != "linux" {
		t.Skip("private memory is read from /proc; runs on Linux")
	}
	binary, err := servers.BuildBolide(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := servers.StartBolide(t.Context(), servers.BolideOptions{Binary: binary, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	r, err := c.Call(t.Context(), s.Broker, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: topic,
		DefaultTopic: "TBW102", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil)
	if err != nil || r.Code != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	return s
}

// private is the server's anonymous memory.
func private(t *testing.T, s *servers.Server) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	kb, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// waiting asks how many requests wait.
func waiting(t *testing.T, c *transport.Client, s *servers.Server) int {
	t.Helper()
	r, err := c.Call(t.Context(), s.Broker, remoting.ReqPollingInfo, &remoting.PollingInfoRequest{ConsumerGroup: group, Topic: topic, QueueID: -1}, nil)
	if err != nil || r.Code != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	var a remoting.PollingInfoResponse
	if err := r.Decode(&a); err != nil {
		t.Fatal(err)
	}
	return int(a.PollingNum)
}

// judge waits until n requests wait, and holds what each costs to limit.
func judge(t *testing.T, s *servers.Server, before, n, limit int) {
	t.Helper()
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	began := time.Now()
	end := began.Add(4 * time.Minute)
	for got := 0; got < n; got = waiting(t, c, s) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d wait", got, n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	each := (private(t, s) - before) / n
	t.Logf("%d waiting requests after %v: %d bytes of private memory each", n, time.Since(began).Round(time.Millisecond), each)
	if each > limit {
		t.Errorf("%d bytes each, the limit is %d", each, limit)
	}
}

// TestRemoting: at most 2 KB for each of 50,000 pops, on 100 connections.
func TestRemoting(t *testing.T) {
	const connections, each = 100, 500
	s := server(t)
	before := private(t, s)
	for range connections {
		c := transport.NewClient(transport.ClientOptions{})
		defer c.Close()
		for range each {
			h := &remoting.PopMessageRequest{ConsumerGroup: group, Topic: topic, QueueID: -1, MaxMsgNums: 1, InvisibleTime: 60_000,
				PollTime: 600_000, BornTime: time.Now().UnixMilli()}
			go func() { _, _ = c.Call(t.Context(), s.Broker, remoting.ReqPopMessage, h, nil) }()
		}
	}
	judge(t, s, before, connections*each, 2<<10)
}

// TestGRPC: at most 16 KB for each of 20,000 receives, on 200 connections.
func TestGRPC(t *testing.T) {
	const connections, each = 200, 100
	s := server(t)
	before := private(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var receives sync.WaitGroup
	defer receives.Wait()
	defer cancel()
	for k := range connections {
		conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		of := metadata.AppendToOutgoingContext(ctx, "x-mq-client-id", fmt.Sprint("client-", k), "x-mq-language", "GO", "x-mq-client-version", "5.1.4", "x-mq-protocol", "v2")
		client := v2.NewMessagingServiceClient(conn)
		for range each {
			receives.Go(func() {
				deadline, end := context.WithTimeout(of, 10*time.Minute)
				defer end()
				stream, err := client.ReceiveMessage(deadline, &v2.ReceiveMessageRequest{
					Group: &v2.Resource{Name: group}, BatchSize: 1, FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"},
					MessageQueue:      &v2.MessageQueue{Topic: &v2.Resource{Name: topic}, Id: -1, Broker: &v2.Broker{Name: "broker-a"}},
					InvisibleDuration: durationpb.New(time.Minute), LongPollingTimeout: durationpb.New(9 * time.Minute)})
				if err == nil {
					_, _ = stream.Recv()
				}
			})
		}
	}
	judge(t, s, before, connections*each, 16<<10)
}
