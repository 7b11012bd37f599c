package grpcv2

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// swift is a broker that costs nothing: what is measured is the front and its transport.
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

func (s *swift) complete() {
	for done := range s.queue {
		done(proxy.Sent{Offset: s.offset.Add(1)}, nil)
	}
}

func newSwift() *swift {
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
			panic(err)
		}
		s.records = append(s.records, storage.Record{QueueOffset: int64(i), PhysicalOffset: int64(i * 1300), Bytes: rec})
	}
	return s
}

// The server of a benchmark is a process of its own, so that its processor time can be
// told from the load's: this test binary again, with serveMode in its environment.
const serveMode = "BOLIDE_GRPCV2_BENCH"

func TestMain(m *testing.M) {
	if mode := os.Getenv(serveMode); mode != "" {
		serveBench(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// server is a gRPC server of either make.
type server interface {
	Serve(ctx context.Context, l net.Listener) error
}

type plain struct{ *grpc.Server }

func (p plain) Serve(_ context.Context, l net.Listener) error { return p.Server.Serve(l) }

// serveBench serves in the given mode until its input ends.
func serveBench(mode string) {
	var srv server
	switch mode {
	case "plain":
		s := grpc.NewServer()
		v2.RegisterMessagingServiceServer(s, empty{})
		srv = plain{s}
	case "empty":
		s := h2.NewServer(h2.Options{})
		v2.RegisterMessagingServiceServer(s, empty{})
		srv = s
	default:
		h := h2.NewServer(h2.Options{})
		s := newSwift()
		s.wait = mode == "wait"
		go s.complete()
		New(Options{Proxy: proxy.New(proxy.Options{Backend: s}), Clock: clock.New()}).Register(h)
		srv = h
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go srv.Serve(context.Background(), lis)
	if path := os.Getenv(serveMode + "_PROFILE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			panic(err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			panic(err)
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	fmt.Println(lis.Addr())
	io.Copy(io.Discard, os.Stdin)
}

// bench is a running benchmark server and connections to it.
type bench struct {
	cmd     *exec.Cmd
	clients []v2.MessagingServiceClient
}

func startBench(b *testing.B, mode string) *bench {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveMode+"="+mode)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	s := &bench{cmd: cmd}
	for range 2 {
		conn, err := grpc.NewClient(strings.TrimSpace(addr), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		s.clients = append(s.clients, v2.NewMessagingServiceClient(conn))
	}
	return s
}

// cpu is the processor time that the server has used, where the system tells it.
func (s *bench) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func benchContext() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), headerClientID, "bench@1@0", headerLanguage, "GO",
		headerVersion, "5.1.4", "x-mq-protocol", "v2", "x-mq-request-id", "5a1f1e7c-0000-4000-8000-000000000000", "x-mq-namespace", "", "x-mq-date-time", "20260101T000000Z")
}

// load runs calls, 32 in flight on each of two connections, and reports the server's
// processor time per message.
func (s *bench) load(b *testing.B, perCall int, call func(v2.MessagingServiceClient) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	before := s.cpu()
	for _, c := range s.clients {
		for range 32 {
			wg.Go(func() {
				for left.Add(int64(-perCall)) > int64(-perCall) {
					if err := call(c); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	b.ReportMetric(float64((s.cpu()-before).Nanoseconds())/float64(b.N), "server-ns/msg")
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

// BenchmarkSend: "plain" is an empty handler of grpc-go, "empty" the same generated handler
// over package h2, "front" this front over a broker that costs nothing, "wait" the same
// completed by another goroutine, as the log's writer does.
func BenchmarkSend(b *testing.B) {
	for _, mode := range []string{"plain", "empty", "front", "wait"} {
		b.Run(mode, func(b *testing.B) {
			ctx, req := benchContext(), sendRequest()
			startBench(b, mode).load(b, 1, func(c v2.MessagingServiceClient) error {
				_, err := c.SendMessage(ctx, req)
				return err
			})
		})
	}
}

// BenchmarkReceive receives 32 a call; then "batch" acknowledges them in one call, "single"
// one by one.
func BenchmarkReceive(b *testing.B) {
	for _, mode := range []string{"none", "batch", "single"} {
		b.Run("ack="+mode, func(b *testing.B) { benchReceive(b, mode) })
	}
}

func benchReceive(b *testing.B, mode string) {
	ctx := benchContext()
	req := &v2.ReceiveMessageRequest{Group: resource("g"), MessageQueue: &v2.MessageQueue{Topic: resource("orders"), Id: -1},
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}, BatchSize: 32, InvisibleDuration: durationpb.New(time.Minute)}
	startBench(b, "front").load(b, 32, func(c v2.MessagingServiceClient) error {
		stream, err := c.ReceiveMessage(ctx, req)
		if err != nil {
			return err
		}
		ack := &v2.AckMessageRequest{Group: req.Group, Topic: req.MessageQueue.Topic}
		for {
			resp, err := stream.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if m := resp.GetMessage(); m != nil {
				ack.Entries = append(ack.Entries, &v2.AckMessageEntry{MessageId: m.SystemProperties.MessageId, ReceiptHandle: m.SystemProperties.GetReceiptHandle()})
			}
		}
		entries := ack.Entries
		switch mode {
		case "batch":
			_, err = c.AckMessage(ctx, ack)
		case "single":
			for i := range entries {
				ack.Entries = entries[i : i+1]
				if _, err = c.AckMessage(ctx, ack); err != nil {
					break
				}
			}
		}
		return err
	})
}

func BenchmarkEncodeDelivery(b *testing.B) {
	s := newSwift()
	p := &proxy.Popped{Broker: "broker-a", PopTime: 1_700_000_000_000, InvisibleTime: 60000, Batches: []proxy.PopBatch{{Records: s.records}}}
	for _, d := range []digestKind{digestMD5, digestCRC} {
		b.Run(strconv.Itoa(int(d)), func(b *testing.B) {
			b.ReportAllocs()
			e := deliveryEncoder{topic: resource("orders"), digest: d, popped: p}
			var buf []byte
			for i := range b.N {
				if err := e.set(&p.Batches[0], i%32); err != nil {
					b.Fatal(err)
				}
				buf = e.append(buf[:0])
			}
		})
	}
}
