package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/bolidemq/bolide/internal/wire/poll/polltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(polltest.Twice{M: m}) }

// service is what the tests serve: generated handlers for some RPCs, direct ones for others.
type service struct {
	v2.UnimplementedMessagingServiceServer
	handled chan context.Context
}

func (s *service) QueryRoute(ctx context.Context, req *v2.QueryRouteRequest) (*v2.QueryRouteResponse, error) {
	switch req.GetTopic().GetName() {
	case "panic":
		panic("as asked")
	case "refused":
		return nil, status.Error(codes.FailedPrecondition, "100 % refused: grün")
	case "wait":
		s.handled <- ctx
		<-ctx.Done()
		return nil, ctx.Err()
	case "who":
		p, _ := peer.FromContext(ctx)
		md, _ := metadata.FromIncomingContext(ctx)
		return &v2.QueryRouteResponse{Status: &v2.Status{Message: fmt.Sprintf("%v %v %q %q %q", p.Addr, p.LocalAddr, md["a"], md["b-bin"], md["grpc-timeout"])}}, nil
	}
	return &v2.QueryRouteResponse{Status: &v2.Status{Message: req.GetTopic().GetName()}}, nil
}

func (s *service) Telemetry(stream grpc.BidiStreamingServer[v2.TelemetryCommand, v2.TelemetryCommand]) error {
	for {
		cmd, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(cmd); err != nil {
			return err
		}
	}
}

// receive answers with as many messages as the batch size says, each with a body of the
// client version's length; the topic "later" is answered when the test says so.
func (s *fixture) receive(k *Call) {
	var req v2.ReceiveMessageRequest
	if err := proto.Unmarshal(k.Message(), &req); err != nil {
		k.Fail(codes.Internal, err.Error())
		return
	}
	answer := func() {
		b := NewBuffer()
		for i := range req.GetBatchSize() {
			at := b.Begin()
			m, _ := proto.Marshal(&v2.ReceiveMessageResponse{Content: &v2.ReceiveMessageResponse_Message{Message: &v2.Message{
				Body: []byte(strings.Repeat(string(rune('a'+i%26)), len(req.GetFilterExpression().GetExpression()))), SystemProperties: &v2.SystemProperties{QueueOffset: proto.Int64(int64(i))}}}})
			b.B = append(b.B, m...)
			b.End(at)
		}
		k.Answer(b, func(complete bool) { s.sent <- complete })
	}
	if req.GetMessageQueue().GetTopic().GetName() != "later" {
		answer()
		return
	}
	k.OnCancel(func() { s.cancelled <- k })
	s.waiting <- answer
}

type fixture struct {
	*service
	server    *Server
	client    v2.MessagingServiceClient
	conn      *grpc.ClientConn
	addr      string
	sent      chan bool
	cancelled chan *Call
	waiting   chan func()
	stopOnce  sync.Once
	served    chan error
	t         testing.TB
}

func newFixture(t testing.TB, limits Limits, more ...func(*Server)) *fixture {
	f := &fixture{t: t, service: &service{handled: make(chan context.Context, 1)}, server: NewServer(Options{Limits: limits, Poller: polltest.Poller(t)}),
		sent: make(chan bool, 1000), cancelled: make(chan *Call, 1000), waiting: make(chan func(), 1000), served: make(chan error, 1)}
	v2.RegisterMessagingServiceServer(f.server, f.service)
	f.server.Direct(v2.MessagingService_ReceiveMessage_FullMethodName, 4<<20, f.receive)
	f.server.Direct(v2.MessagingService_SendMessage_FullMethodName, 16<<20, func(k *Call) {
		b := NewBuffer()
		at := b.Begin()
		m, _ := proto.Marshal(&v2.SendMessageResponse{Status: &v2.Status{Message: fmt.Sprint(len(k.Message()), " ", k.Header("a"))}})
		b.B = append(b.B, m...)
		b.End(at)
		k.Answer(b, nil)
	})
	for _, register := range more {
		register(f.server)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	go func() { f.served <- f.server.Serve(context.Background(), l) }()
	f.conn, err = grpc.NewClient(f.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	f.client = v2.NewMessagingServiceClient(f.conn)
	t.Cleanup(func() {
		f.conn.Close()
		f.stop()
	})
	return f
}

func (f *fixture) stop() {
	f.stopOnce.Do(func() {
		f.server.Stop(context.Background())
		if err := <-f.served; err != nil {
			f.t.Error(err)
		}
	})
}

func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	f.t.Cleanup(cancel)
	return ctx
}

func topic(name string) *v2.Resource { return &v2.Resource{Name: name} }

func (f *fixture) route(ctx context.Context, name string) (string, error) {
	r, err := f.client.QueryRoute(ctx, &v2.QueryRouteRequest{Topic: topic(name)})
	return r.GetStatus().GetMessage(), err
}

func receiveOf(name string, batch, size int) *v2.ReceiveMessageRequest {
	return &v2.ReceiveMessageRequest{MessageQueue: &v2.MessageQueue{Topic: topic(name)}, BatchSize: int32(batch),
		FilterExpression: &v2.FilterExpression{Expression: strings.Repeat("x", size)}}
}

// received reads an answer to its end and checks that nothing is missing or out of order.
func (f *fixture) received(stream grpc.ServerStreamingClient[v2.ReceiveMessageResponse], size int) (n int, err error) {
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if m := r.GetMessage(); m.GetSystemProperties().GetQueueOffset() != int64(n) || len(m.GetBody()) != size {
			f.t.Errorf("message %d: offset %d, %d bytes", n, m.GetSystemProperties().GetQueueOffset(), len(m.GetBody()))
		}
		n++
	}
}

func TestGeneratedHandlers(t *testing.T) {
	f := newFixture(t, Limits{})
	for range 3 { // the answers' headers change form after the first
		if got, err := f.route(f.context(), "orders"); err != nil || got != "orders" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := f.route(f.context(), ""); err != nil || got != "" {
		t.Errorf("an empty request: %q, %v", got, err)
	}
	_, err := f.route(f.context(), "refused")
	if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "100 % refused: grün" {
		t.Errorf("refused: %v", err)
	}
	if _, err := f.route(f.context(), "panic"); status.Code(err) != codes.Internal {
		t.Errorf("panicked: %v", err)
	}
	if _, err := f.client.Heartbeat(f.context(), &v2.HeartbeatRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("not implemented: %v", err)
	}
	if err := f.conn.Invoke(f.context(), "/no.Service/Method", &v2.HeartbeatRequest{}, &v2.HeartbeatResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: %v", err)
	}
	ctx := metadata.AppendToOutgoingContext(f.context(), "a", "1", "a", "2", "b-bin", "\x00\xff")
	got, err := f.route(ctx, "who")
	if err != nil || !strings.Contains(got, f.addr) || !strings.HasSuffix(got, `["1" "2"] ["\x00\xff"] []`) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDeadlineAndCancellation(t *testing.T) {
	f := newFixture(t, Limits{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.route(ctx, "wait"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
	<-(<-f.handled).Done()
	ctx, cancel = context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := f.route(ctx, "wait")
		done <- err
	}()
	handled := <-f.handled
	cancel()
	<-handled.Done()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBidirectionalStream(t *testing.T) {
	f := newFixture(t, Limits{})
	stream, err := f.client.Telemetry(f.context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		cmd := &v2.TelemetryCommand{Status: &v2.Status{Message: strings.Repeat("z", i*500)}}
		if err := stream.Send(cmd); err != nil {
			t.Fatal(err)
		}
		back, err := stream.Recv()
		if err != nil || !proto.Equal(cmd, back) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("after its end: %v", err)
	}
}

func TestDirectCalls(t *testing.T) {
	f := newFixture(t, Limits{})
	for _, size := range []int{0, 1, 1000, 16 << 10, 100 << 10, 3 << 20, 15 << 20} {
		req := &v2.SendMessageRequest{Messages: []*v2.Message{{Body: make([]byte, size)}}}
		r, err := f.client.SendMessage(metadata.AppendToOutgoingContext(f.context(), "a", "b"), req)
		if want := fmt.Sprint(proto.Size(req), " b"); err != nil || r.GetStatus().GetMessage() != want {
			t.Errorf("%q, %v, want %s", r.GetStatus().GetMessage(), err, want)
		}
	}
	_, err := f.client.SendMessage(f.context(), &v2.SendMessageRequest{Messages: []*v2.Message{{Body: make([]byte, 17<<20)}}})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "the most is 16777216") {
		t.Errorf("too large: %v", err)
	}
	if n := f.server.partial.Load(); n != 0 {
		t.Errorf("%d bytes of incomplete requests are left", n)
	}
	for _, c := range []struct{ batch, size int }{{0, 0}, {1, 10}, {32, 1024}, {32, 200 << 10}} {
		stream, err := f.client.ReceiveMessage(f.context(), receiveOf("orders", c.batch, c.size))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.received(stream, c.size); n != c.batch || err != nil {
			t.Errorf("%d messages of %d, %v", n, c.batch, err)
		}
		if !<-f.sent {
			t.Error("a complete answer is told as not complete")
		}
	}
}

// TestManyCallsAtOnce has answers of all sizes side by side on one connection.
func TestManyCallsAtOnce(t *testing.T) {
	f := newFixture(t, Limits{})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for k := range 5 {
				size := (i * 997 * (k + 1)) % 60_000
				stream, err := f.client.ReceiveMessage(f.context(), receiveOf("orders", 8, size))
				if err != nil {
					t.Error(err)
					return
				}
				if n, err := f.received(stream, size); n != 8 || err != nil {
					t.Errorf("%d messages, %v", n, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWaitingCalls(t *testing.T) {
	f := newFixture(t, Limits{})
	answered, err := f.client.ReceiveMessage(f.context(), receiveOf("later", 2, 5))
	if err != nil {
		t.Fatal(err)
	}
	answer := <-f.waiting
	ctx, cancel := context.WithCancel(f.context())
	if _, err := f.client.ReceiveMessage(ctx, receiveOf("later", 2, 5)); err != nil {
		t.Fatal(err)
	}
	late := <-f.waiting
	cancel()
	<-f.cancelled
	answer()
	if n, err := f.received(answered, 5); n != 2 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
	late()
	if first, second := <-f.sent, <-f.sent; !first || second {
		t.Errorf("told complete: %v for the answer that was read, %v for the other", first, second)
	}
	// The connection's end cancels too.
	if _, err := f.client.ReceiveMessage(f.context(), receiveOf("later", 1, 1)); err != nil {
		t.Fatal(err)
	}
	<-f.waiting
	f.conn.Close()
	<-f.cancelled
}

// TestLeave: calls that are there go on, new ones are refused, and what is left to do is the
// end of the connection.
func TestLeave(t *testing.T) {
	f := newFixture(t, Limits{})
	r := f.raw(t)
	wire, _ := proto.Marshal(receiveOf("later", 1, 1))
	r.call(1, receivePath, wire)
	answer := <-f.waiting
	ctx, cancel := context.WithCancel(f.context())
	defer cancel()
	handled := make(chan struct{})
	go func() {
		if _, err := f.route(ctx, "wait"); status.Code(err) != codes.Canceled {
			t.Errorf("a call that was there: %v", err)
		}
		close(handled)
	}()
	there := <-f.handled
	f.server.Leave()
	r.goAway(http2.ErrCodeNo)
	r.call(3, receivePath, wire)
	if rst := r.until(http2.FrameRSTStream).(*http2.RSTStreamFrame); rst.ErrCode != http2.ErrCodeRefusedStream || rst.StreamID != 3 {
		t.Errorf("a call behind it: %v", rst)
	}
	answer()
	for !r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame).StreamEnded() {
	}
	if fr, err := r.fr.ReadFrame(); err == nil {
		t.Errorf("%v behind the last answer", fr)
	}
	if there.Err() != nil {
		t.Error("the context of a call that goes on has ended")
	}
	cancel()
	<-handled
}

// TestStop lets calls end, tells those that do not, and leaves nothing.
func TestStop(t *testing.T) {
	f := newFixture(t, Limits{})
	stream, err := f.client.Telemetry(f.context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&v2.TelemetryCommand{}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	last, err := f.client.ReceiveMessage(f.context(), receiveOf("later", 3, 100))
	if err != nil {
		t.Fatal(err)
	}
	answer := <-f.waiting
	stopped := make(chan struct{})
	go func() {
		f.stop()
		close(stopped)
	}()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream when the server stops: %v", err)
	}
	answer()
	if n, err := f.received(last, 100); n != 3 || err != nil {
		t.Errorf("a call that was running: %d messages, %v", n, err)
	}
	<-stopped
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := f.route(ctx, "orders"); status.Code(err) != codes.Unavailable && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the stop: %v", err)
	}
}
