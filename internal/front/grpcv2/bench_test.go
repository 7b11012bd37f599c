package grpcv2

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// swift is a broker that costs nothing: what is measured is the front and grpc-go.
type swift struct {
	*fakeBroker
	records []storage.Record
	offset  atomic.Int64
	wait    bool // complete from another goroutine, as the log's writer does
	queue   chan func(proxy.Sent, error)
}

func (s *swift) Send(_ string, ms []*message.Message, done func(proxy.Sent, error)) {
	if s.wait {
		s.queue <- done
		return
	}
	done(proxy.Sent{Offset: s.offset.Add(1)}, nil)
}

func (s *swift) Pop(q proxy.PopRequest, done func(proxy.Popped, error)) {
	done(proxy.Popped{Broker: "broker-a", PopTime: 1_700_000_000_000, InvisibleTime: 60000,
		Batches: []proxy.PopBatch{{Records: s.records}}}, nil)
}

func (s *swift) Ack(_, _ string, handles []receipt.Handle, done func([]error)) {
	done(make([]error, len(handles)))
}

func newSwift(b *testing.B) *swift {
	s := &swift{fakeBroker: newFakeBroker(), queue: make(chan func(proxy.Sent, error), 1024)}
	s.topic("orders", proxy.KindNormal)
	props := message.Properties("")
	for _, kv := range [][2]string{{"UNIQ_KEY", "01A1B2C3D4E5F60011223344556677"}, {"RECONSUME_TIME", "0"}, {"PGROUP", "orders"},
		{"__BORNHOST", "host-1"}, {"BORN_TIMESTAMP", "1700000000000"}, {"TAGS", "a"}, {"CLUSTER", "DefaultCluster"}} {
		props = props.With(kv[0], kv[1])
	}
	for i := range 32 {
		m := message.Message{Topic: "orders", Properties: props, Body: make([]byte, 1024), QueueOffset: int64(i), PhysicalOffset: int64(i * 1300)}
		rec, err := message.AppendStored(nil, &m)
		if err != nil {
			b.Fatal(err)
		}
		s.records = append(s.records, storage.Record{QueueOffset: int64(i), PhysicalOffset: int64(i * 1300), Bytes: rec})
	}
	return s
}

func benchServer(b *testing.B, backend proxy.Backend, options []grpc.ServerOption, register func(*grpc.Server)) []v2.MessagingServiceClient {
	srv := grpc.NewServer(options...)
	if register == nil {
		New(Options{Proxy: proxy.New(proxy.Options{Backend: backend}), Clock: clock.New()}).Register(srv)
	} else {
		register(srv)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go srv.Serve(lis)
	b.Cleanup(srv.Stop)
	var clients []v2.MessagingServiceClient
	for range 2 {
		conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		clients = append(clients, v2.NewMessagingServiceClient(conn))
	}
	return clients
}

func benchContext() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), headerClientID, "bench@1@0", headerLanguage, "GOLANG",
		headerVersion, "5.1.4", "x-mq-protocol", "v2", "x-mq-request-id", "5a1f1e7c-0000-4000-8000-000000000000", "x-mq-namespace", "", "x-mq-date-time", "20260101T000000Z")
}

// load runs calls on the clients, 32 in flight on each, and reports CPU per message.
func load(b *testing.B, clients []v2.MessagingServiceClient, perCall int, call func(v2.MessagingServiceClient) error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	before := cpu()
	for _, c := range clients {
		for range 32 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for left.Add(int64(-perCall)) > int64(-perCall) {
					if err := call(c); err != nil {
						b.Error(err)
						return
					}
				}
			}()
		}
	}
	wg.Wait()
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/msg")
}

func sendRequest() *v2.SendMessageRequest {
	tag := "a"
	return &v2.SendMessageRequest{Messages: []*v2.Message{{
		Topic: resource("orders"),
		SystemProperties: &v2.SystemProperties{Tag: &tag, MessageId: "01A1B2C3D4E5F60011223344556677", MessageType: v2.MessageType_NORMAL,
			BornHost: "host-1", BornTimestamp: timestamppb.New(time.UnixMilli(1_700_000_000_000)), BodyEncoding: v2.Encoding_IDENTITY, QueueId: 3},
		Body: make([]byte, 1024)}}}
}

type empty struct {
	v2.UnimplementedMessagingServiceServer
}

func (empty) SendMessage(context.Context, *v2.SendMessageRequest) (*v2.SendMessageResponse, error) {
	return &v2.SendMessageResponse{Status: ok, Entries: []*v2.SendResultEntry{{Status: ok, MessageId: "01A1B2C3D4E5F60011223344556677"}}}, nil
}

func BenchmarkSendEmptyHandler(b *testing.B) {
	clients := benchServer(b, nil, nil, func(s *grpc.Server) { v2.RegisterMessagingServiceServer(s, empty{}) })
	benchSend(b, clients)
}

func BenchmarkSendEmptyHandlerOurOptions(b *testing.B) {
	clients := benchServer(b, nil, ServerOptions(), func(s *grpc.Server) { v2.RegisterMessagingServiceServer(s, empty{}) })
	benchSend(b, clients)
}

func BenchmarkSend(b *testing.B) {
	benchSend(b, benchServer(b, newSwift(b), ServerOptions(), nil))
}

func BenchmarkSendWait(b *testing.B) {
	s := newSwift(b)
	s.wait = true
	go func() {
		for done := range s.queue {
			done(proxy.Sent{Offset: s.offset.Add(1)}, nil)
		}
	}()
	defer close(s.queue)
	benchSend(b, benchServer(b, s, ServerOptions(), nil))
}

func benchSend(b *testing.B, clients []v2.MessagingServiceClient) {
	ctx, req := benchContext(), sendRequest()
	load(b, clients, 1, func(c v2.MessagingServiceClient) error {
		_, err := c.SendMessage(ctx, req)
		return err
	})
}

func BenchmarkReceiveAckBatch(b *testing.B) {
	ctx := benchContext()
	req := &v2.ReceiveMessageRequest{Group: resource("g"), MessageQueue: &v2.MessageQueue{Topic: resource("orders"), Id: -1},
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}, BatchSize: 32, InvisibleDuration: durationpb.New(time.Minute)}
	load(b, benchServer(b, newSwift(b), ServerOptions(), nil), 32, func(c v2.MessagingServiceClient) error {
		stream, err := c.ReceiveMessage(ctx, req)
		if err != nil {
			return err
		}
		ack := &v2.AckMessageRequest{Group: req.Group, Topic: req.MessageQueue.Topic}
		for {
			resp, err := stream.Recv()
			if err != nil {
				break
			}
			if m := resp.GetMessage(); m != nil {
				ack.Entries = append(ack.Entries, &v2.AckMessageEntry{MessageId: m.SystemProperties.MessageId, ReceiptHandle: m.SystemProperties.GetReceiptHandle()})
			}
		}
		_, err = c.AckMessage(ctx, ack)
		return err
	})
}

func BenchmarkReceive(b *testing.B) {
	ctx := benchContext()
	req := &v2.ReceiveMessageRequest{Group: resource("g"), MessageQueue: &v2.MessageQueue{Topic: resource("orders"), Id: -1},
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}, BatchSize: 32, InvisibleDuration: durationpb.New(time.Minute)}
	load(b, benchServer(b, newSwift(b), ServerOptions(), nil), 32, func(c v2.MessagingServiceClient) error {
		stream, err := c.ReceiveMessage(ctx, req)
		if err != nil {
			return err
		}
		for {
			if err := stream.RecvMsg(new(v2.ReceiveMessageResponse)); err != nil {
				break
			}
		}
		return nil
	})
}

func BenchmarkEncodeDelivery(b *testing.B) {
	s := newSwift(b)
	p := &proxy.Popped{Broker: "broker-a", PopTime: 1_700_000_000_000, InvisibleTime: 60000, Batches: []proxy.PopBatch{{Records: s.records}}}
	for _, d := range []digestKind{digestMD5, digestCRC} {
		b.Run(strconv.Itoa(int(d)), func(b *testing.B) {
			b.ReportAllocs()
			e := deliveryEncoder{topic: resource("orders"), digest: d, popped: p}
			for i := range b.N {
				if err := e.set(&p.Batches[0], i%32); err != nil {
					b.Fatal(err)
				}
				wire, err := e.appendWire()
				if err != nil {
					b.Fatal(err)
				}
				wire.Free()
			}
		})
	}
}
