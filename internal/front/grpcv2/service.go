// Package grpcv2 is the gRPC v2 service (apache.rocketmq.v2.MessagingService): one file
// per RPC, one table of errors. docs/protocol/grpc.md says what each RPC answers.
//
// Invariants: refusals are status codes inside the answer, the gRPC status stays OK
// (telemetry, which has no answer to put them in, excepted); every receive stream ends
// with a delivery timestamp; what a client could not be handed goes back to the broker at
// once. A request's strings alias its buffer: they live until its answer is encoded and
// are never kept. Handlers start no goroutine: grpc-go has one per call anyway.
//
// Neighbours: node makes the *grpc.Server with ServerOptions and calls Register; proxy
// does the work; the generated messages come from rocketmq-clients and are used nowhere
// else in the server.
package grpcv2

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/filter"
)

// Options is what New needs.
type Options struct {
	Proxy *proxy.Proxy
	Clock *clock.Clock
	// MaxMessageSize is the largest body that is taken; 0 means 4 MiB.
	MaxMessageSize int
	// Advertise, when not empty, is the HOST:PORT that routes name; otherwise they name
	// the endpoints that the request came with.
	Advertise string
	Log       *slog.Logger
}

// Service answers the RPCs.
type Service struct {
	v2.UnimplementedMessagingServiceServer

	proxy          *proxy.Proxy
	clock          *clock.Clock
	maxMessageSize int
	advertised     *v2.Endpoints // nil without Options.Advertise
	log            *slog.Logger

	filters   filter.Cache
	answering atomic.Int64 // bytes of messages on their way to clients

	stopping chan struct{}
	stopOnce sync.Once
	calls    running
}

// New returns the service. It starts nothing.
func New(o Options) *Service {
	s := &Service{
		proxy:          o.Proxy,
		clock:          o.Clock,
		maxMessageSize: o.MaxMessageSize,
		log:            o.Log,
		stopping:       make(chan struct{}),
	}
	if s.maxMessageSize == 0 {
		s.maxMessageSize = 4 << 20
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if host, port, err := splitHostPort(o.Advertise); err == nil {
		s.advertised = endpointsOf(host, port)
	}
	return s
}

// maxInbound is the largest request that is read, as in Apache RocketMQ: many messages
// may come in one.
const maxInbound = 130 << 20

// maxHeaders is how many bytes the headers of a call may have. They are kept as long as
// the call, which may be a long poll or a telemetry stream; clients send some 500.
const maxHeaders = 64 << 10

// streamWorkers is the number of goroutines that wait for calls with a stack that has
// grown already; calls beyond them get new ones, whose growing costs a tenth of a send.
const streamWorkers = 128

// ServerOptions are the options that the *grpc.Server of this service must be made with;
// the codec among them is required, the others are what serves well.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxInbound),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(10_000),
		grpc.ConnectionTimeout(20 * time.Second),
		// Clients may ping every 10 s, with calls or without; a dead peer is found within
		// a minute. An idle connection is left open: to close it helps nobody.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		// Fixed windows: no pings to estimate bandwidth, few window updates.
		grpc.StaticStreamWindowSize(1 << 20),
		grpc.StaticConnWindowSize(4 << 20),
		grpc.ReadBufferSize(64 << 10),
		grpc.WriteBufferSize(64 << 10),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.WaitForHandlers(true),
	}
}

// Register makes srv, which was made with ServerOptions, serve s.
func (s *Service) Register(srv *grpc.Server) {
	srv.RegisterService(s.desc(), s)
}

// desc is the generated description of the service, with the handlers of the hot RPCs
// replaced by ones that work on bytes.
func (s *Service) desc() *grpc.ServiceDesc {
	d := v2.MessagingService_ServiceDesc
	d.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i := range d.Methods {
		switch d.Methods[i].MethodName {
		case "SendMessage":
			d.Methods[i].Handler = sendMessageHandler
		case "AckMessage":
			d.Methods[i].Handler = ackMessageHandler
		}
	}
	return &d
}

// Drain answers what waits for messages and returns when no call is left but telemetry
// streams, which end with their connections, or when ctx ends. Node stops the listeners
// before it and the *grpc.Server after it.
func (s *Service) Drain(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stopping) })
	select {
	case <-s.calls.idle():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// running counts the calls that Drain waits for.
type running struct {
	mu struct {
		sync.Mutex
		n    int
		none chan struct{} // closed when n falls to 0; nil until somebody asks
	}
}

func (r *running) begin() {
	r.mu.Lock()
	r.mu.n++
	r.mu.Unlock()
}

func (r *running) end() {
	r.mu.Lock()
	if r.mu.n--; r.mu.n == 0 && r.mu.none != nil {
		close(r.mu.none)
		r.mu.none = nil
	}
	r.mu.Unlock()
}

func (r *running) idle() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if r.mu.none == nil {
		r.mu.none = make(chan struct{})
	}
	return r.mu.none
}
