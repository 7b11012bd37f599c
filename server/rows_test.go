package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/server"
)

// These are reports of users about the ports.

// R055: with IPv6 addresses alone everything works by both protocols: routes, sends,
// receives, acknowledgements, administration.
func TestIPv6Only(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6:", err)
	} else {
		l.Close()
	}
	s := start(t, func(o *server.Options) {
		o.NamesrvAddr, o.BrokerAddr, o.GRPCAddr, o.ProxyAddr, o.MetricsAddr = "[::1]:0", "[::1]:0", "[::1]:0", "[::1]:0", "[::1]:0"
	})
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders")
	if at := c.brokerAddress(s.Namesrv(), "orders"); at != s.Broker() {
		t.Fatalf("clients are sent to %s, the broker is at %s", at, s.Broker())
	}
	if at := endpoint(t, s.GRPC(), insecure.NewCredentials(), "orders"); at != "::1:"+port(t, s.GRPC()) {
		t.Fatalf("clients of gRPC are sent to %s", at)
	}
	for i := range 2 {
		a := c.call(s.Broker(), remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: "orders",
			DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 4, QueueID: int32(i), BornTimestamp: time.Now().UnixMilli()}, []byte("x"))
		if a.Code != remoting.ResSuccess {
			t.Fatal(a.Remark)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-mq-client-id", "c", "x-mq-language", "GO", "x-mq-client-version", "5.0.0")
	grpc := service(t, s.GRPC(), insecure.NewCredentials())
	for got := 0; got < 2; {
		stream, err := grpc.ReceiveMessage(ctx, &v2.ReceiveMessageRequest{Group: &v2.Resource{Name: "g"},
			MessageQueue: &v2.MessageQueue{Topic: &v2.Resource{Name: "orders"}, Id: -1}, BatchSize: 8, InvisibleDuration: durationpb.New(time.Minute),
			FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			a, err := stream.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			m := a.GetMessage()
			if m == nil {
				continue
			}
			got++
			if born := m.GetSystemProperties().GetBornHost(); born != "::1" {
				if host, _, _ := net.SplitHostPort(born); host != "::1" {
					t.Errorf("born at %q", born)
				}
			}
			ack, err := grpc.AckMessage(ctx, &v2.AckMessageRequest{Group: &v2.Resource{Name: "g"}, Topic: &v2.Resource{Name: "orders"},
				Entries: []*v2.AckMessageEntry{{MessageId: m.GetSystemProperties().GetMessageId(), ReceiptHandle: m.GetSystemProperties().GetReceiptHandle()}}})
			if err != nil || ack.GetStatus().GetCode() != v2.Code_OK {
				t.Fatalf("%v %v", ack, err)
			}
		}
	}
	if lag := scrape(t, s.Metrics())[`rocketmq_consumer_lag_messages{consumer_group="g",topic="orders",is_retry="false",is_system="false"`]; lag != 0 {
		t.Errorf("%d behind", lag)
	}
}

func port(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// R046: connections that come with a PROXY header, ask, and are cut leave no goroutine, no
// client in a list, and a few KiB for a minute, lest a late heartbeat revives them
// (TestNothingIsLeftOfManyClients).
func TestConnectionsLeaveNothing(t *testing.T) {
	s := start(t, nil)
	heartbeat := func(i int) []byte {
		header := `{"code":34,"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":513}`
		body := fmt.Sprintf(`{"clientID":"c%d","consumerDataSet":[],"producerDataSet":[{"groupName":"p"}]}`, i)
		frame := fmt.Appendf(nil, "PROXY TCP4 10.1.%d.%d 10.0.0.1 1000 10911\r\n", i>>8&255, i&255)
		size := 4 + len(header) + len(body)
		frame = append(frame, byte(size>>24), byte(size>>16), byte(size>>8), byte(size), 0, 0, byte(len(header)>>8), byte(len(header)))
		return append(append(frame, header...), body...)
	}
	round := func(n int) {
		for i := range n {
			c, err := net.Dial("tcp", s.Broker())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(heartbeat(i)); err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			c.(*net.TCPConn).SetLinger(0) // it vanishes
			c.Close()
		}
	}
	rest := func() (goroutines int, heap int64) {
		c := newCaller(t, nil)
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			a := c.call(s.Broker(), remoting.ReqGetProducerConnectionList, &remoting.GetProducerConnectionListRequest{ProducerGroup: "p"}, nil)
			if a.Code != remoting.ResSuccess {
				break // the group has nobody
			}
			if time.Now().After(deadline) {
				t.Fatalf("producers are still listed: %s", a.Body)
			}
		}
		c.c.Close()
		return runtime.NumGoroutine(), int64(memory().HeapAlloc)
	}
	round(200)
	goroutines, heap := rest()
	const n = 3000
	round(n)
	after, grown := rest()
	t.Logf("%d goroutines, %d KiB; then %d, %d KiB", goroutines, heap>>10, after, grown>>10)
	if after > goroutines+10 || grown > heap+n*8<<10 {
		t.Errorf("%d goroutines and %d KiB became %d and %d KiB", goroutines, heap>>10, after, grown>>10)
	}
}
