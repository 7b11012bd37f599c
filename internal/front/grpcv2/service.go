// Package grpcv2 is the gRPC v2 service (apache.rocketmq.v2.MessagingService): one file
// per RPC, one table of errors. docs/protocol/grpc.md says what each RPC answers.
//
// Invariants: refusals are status codes inside the answer, the gRPC status stays OK
// (telemetry, which has no answer to put them in, excepted); every receive stream ends
// with a delivery timestamp; what a client could not be handed goes back to the broker at
// once. A request's strings alias its buffer: they live until its answer is encoded and
// are never kept. SendMessage, ReceiveMessage and AckMessage are direct calls of package
// h2: they run on their connection's reader and are answered by the completion of what
// they asked for; the others have a goroutine each, which the transport starts.
//
// Neighbours: node makes the h2.Server and calls Register; proxy does the work; the
// generated messages come from rocketmq-clients and are used nowhere else in the server.
package grpcv2

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/h2"
)

// Options is what New needs.
type Options struct {
	Proxy *proxy.Proxy
	Clock *clock.Clock
	// Config is what clients may send and ask for; nil means the defaults.
	Config *config.Proxy
	// Advertise, when not empty, is the HOST:PORT that routes name; otherwise they name
	// the endpoints that the request came with.
	Advertise string
	Log       *slog.Logger
}

// Service answers the RPCs.
type Service struct {
	v2.UnimplementedMessagingServiceServer

	proxy      *proxy.Proxy
	clock      *clock.Clock
	limits     *config.Proxy
	advertised *v2.Endpoints // nil without Options.Advertise
	log        *slog.Logger

	filters   filter.Cache
	answering atomic.Int64 // bytes of messages on their way to clients

	receives receives // that wait
	calls    running
}

// New returns the service. It starts nothing.
func New(o Options) *Service {
	s := &Service{
		proxy:  o.Proxy,
		clock:  o.Clock,
		limits: o.Config,
		log:    o.Log,
	}
	if s.limits == nil {
		limits := config.DefaultProxy()
		s.limits = &limits
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if host, port, err := splitHostPort(o.Advertise); err == nil {
		s.advertised = endpointsOf(host, port)
	}
	return s
}

// maxSend is the largest SendMessage that is read, as in Apache RocketMQ: many messages
// may come in one. In other requests that much would be millions of empty elements, each
// of them many times its size in memory; they have the server's limit.
const (
	maxSend  = 130 << 20
	maxPlain = 4 << 20
)

// Register makes srv serve s.
func (s *Service) Register(srv *h2.Server) {
	v2.RegisterMessagingServiceServer(srv, s)
	srv.Direct(v2.MessagingService_SendMessage_FullMethodName, maxSend, s.direct(s.sendMessage))
	srv.Direct(v2.MessagingService_ReceiveMessage_FullMethodName, maxPlain, s.direct(s.receiveMessage))
	srv.Direct(v2.MessagingService_AckMessage_FullMethodName, maxPlain, s.direct(s.ackMessage))
}

// direct counts the calls of a handler that runs on its connection's reader. The handler, or
// whoever it hands a call to, ends it; of one that has panicked nobody knows whether it will
// be ended.
func (s *Service) direct(handle func(*h2.Call)) func(*h2.Call) {
	return func(call *h2.Call) {
		s.calls.begin()
		handled := false
		defer func() {
			if !handled {
				s.calls.lose()
			}
		}()
		handle(call)
		handled = true
	}
}

// Drain answers what waits for messages and returns when no call is left but telemetry
// streams, which end with their connections, or when ctx ends. Node has the h2.Server
// leave before it and stops it afterwards.
func (s *Service) Drain(ctx context.Context) error {
	s.receives.stop()
	select {
	case <-s.calls.idle():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// running counts the calls that Drain waits for. It does not wait for as many as were lost:
// rather one too few, whose answer still has the time that h2.Server.Stop leaves it, than one
// that never ends.
type running struct {
	mu struct {
		sync.Mutex
		n    int
		lost int
		none chan struct{} // closed when n falls to lost; nil until somebody asks
	}
}

func (r *running) begin() {
	r.mu.Lock()
	r.mu.n++
	r.mu.Unlock()
}

func (r *running) end() {
	r.mu.Lock()
	r.mu.n--
	r.tellLocked()
	r.mu.Unlock()
}

func (r *running) lose() {
	r.mu.Lock()
	r.mu.lost++
	r.tellLocked()
	r.mu.Unlock()
}

func (r *running) tellLocked() {
	if r.mu.n <= r.mu.lost && r.mu.none != nil {
		close(r.mu.none)
		r.mu.none = nil
	}
}

func (r *running) idle() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.n <= r.mu.lost {
		none := make(chan struct{})
		close(none)
		return none
	}
	if r.mu.none == nil {
		r.mu.none = make(chan struct{})
	}
	return r.mu.none
}
