package h2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/bolidemq/bolide/internal/wire/poll"
	"github.com/bolidemq/bolide/internal/wire/sock"
)

// Server serves the calls of connections that peers open.
type Server struct {
	limits  Limits
	poller  *poll.Poller
	round   Round
	log     *slog.Logger
	methods map[string]*method // by path
	partial atomic.Int64       // bytes of requests that are not complete

	listeners sock.Listeners

	conns sock.Conns[*Conn]
}

// method is one RPC.
type method struct {
	path   string
	most   int         // bytes of a message of the request
	direct func(*Call) // or generated code:
	impl   any
	unary  *grpc.MethodDesc
	stream *grpc.StreamDesc
}

// streams reports whether the client sends more than one message.
func (m *method) streams() bool {
	return m.direct == nil && m.stream != nil && m.stream.ClientStreams
}

// NewServer returns a server without services; it starts nothing.
func NewServer(o Options) *Server {
	s := &Server{limits: o.Limits.withDefaults(), poller: o.Poller, round: o.Round, log: o.Log, methods: map[string]*method{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// RegisterService implements grpc.ServiceRegistrar. It must be called before Serve.
func (s *Server) RegisterService(d *grpc.ServiceDesc, impl any) {
	for i := range d.Methods {
		m := &d.Methods[i]
		s.add(&method{path: fmt.Sprintf("/%s/%s", d.ServiceName, m.MethodName), most: s.limits.Message, impl: impl, unary: m})
	}
	for i := range d.Streams {
		m := &d.Streams[i]
		s.add(&method{path: fmt.Sprintf("/%s/%s", d.ServiceName, m.StreamName), most: s.limits.Message, impl: impl, stream: m})
	}
}

// Direct makes handle serve the RPC of that path, whose requests have one message of at
// most that many bytes, instead of what was registered for it. handle must not block. It
// must be called before Serve.
func (s *Server) Direct(path string, most int, handle func(*Call)) {
	s.add(&method{path: path, most: most, direct: handle})
}

func (s *Server) add(m *method) { s.methods[m.path] = m }

// Serve accepts connections of l and serves them until ctx ends, l fails or Stop is
// called; the first and the last are no error. It closes l; the connections go on until
// Stop.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.listeners.Serve(ctx, l, s.log, func(nc net.Conn) bool {
		c, err := s.open(s.poller.Take(nc))
		if err == nil {
			s.start(c)
		}
		return err == nil
	})
}

// open takes a connection in; run must follow.
func (s *Server) open(nc net.Conn) (*Conn, error) {
	c := newConn(s, nc)
	c.lastRead.Store(time.Now().UnixNano())
	if !s.conns.Add(c, s.sweepEvery(), s.sweep) {
		nc.Close()
		return nil, ErrShutdown
	}
	return c, nil
}

// start has the connection read, until it ends.
func (s *Server) start(c *Conn) {
	if polled, ok := c.nc.(*poll.Conn); ok {
		polled.Through(c.greet, c.readLoop, func(err error) { s.finish(c, err) })
	} else {
		go s.run(c)
	}
}

// run is the connection's reader, until it ends.
func (s *Server) run(c *Conn) {
	c.greet()
	s.finish(c, c.readLoop())
}

// finish comes after the last frame; err is why that was the last.
func (s *Server) finish(c *Conn, err error) {
	defer s.conns.Running.Done()
	c.closeWith(err)
	c.mu.Lock()
	err = c.mu.closed
	c.mu.Unlock()
	c.end()
	s.conns.Remove(c)
	if !orderly(err) {
		var broken connError
		if errors.As(err, &broken) || errors.Is(err, ErrStalled) {
			s.log.Warn("connection cut", "remote", c.remote, "err", err)
		}
	}
}

func (s *Server) sweepEvery() time.Duration {
	return min(s.limits.Ping, s.limits.PingTimeout, s.limits.Stall) / 4
}

// sweep asks silent peers whether they are there, and cuts those that do not answer or do
// not read.
func (s *Server) sweep() {
	now := time.Now().UnixNano()
	for _, c := range s.conns.All() {
		since := c.writeSince.Load()
		asked := c.pinged.Load()
		switch {
		case since != 0 && now-since > int64(s.limits.Stall)*(1+c.writeSize.Load()>>20):
			c.closeWith(ErrStalled)
		case since != 0: // the peer is busy reading
		case asked != 0 && now-asked > int64(s.limits.PingTimeout):
			c.closeWith(ErrSilent)
		case asked == 0 && now-c.lastRead.Load() > int64(s.limits.Ping):
			c.pinged.Store(now)
			c.control(func(b []byte) []byte {
				b = appendFrameHeader(b, 8, typePing, 0, 0)
				return append(b, "bolide??"...)
			})
		}
	}
	s.conns.Again(s.sweepEvery())
}

// Cut cuts the connections that are open now, without a farewell.
func (s *Server) Cut() {
	for _, c := range s.conns.All() {
		c.closeWith(ErrClosed)
	}
}

// lastWords is how long a peer has to take what is still to be sent to it when the server
// stops.
const lastWords = 2 * time.Second

// Leave begins the server's end: listeners close, peers are told to call elsewhere, and
// calls that come all the same are refused. Those there are go on; each connection closes
// when its own are answered and the answers written.
func (s *Server) Leave() {
	s.conns.Close()
	s.listeners.Close()
	for _, c := range s.conns.All() {
		c.leave()
	}
}

// Stop ends the server: it leaves, handlers that are goroutines see their contexts end,
// and connections that have not closed by then are cut after a while, or when ctx ends. It
// returns when all have ended.
func (s *Server) Stop(ctx context.Context) {
	s.Leave()
	for _, c := range s.conns.All() {
		c.cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		for _, c := range s.conns.All() {
			c.closeWith(ErrClosed) // without a farewell, which could take long under TLS
		}
	})
	s.conns.Running.Wait()
	stop()
}
