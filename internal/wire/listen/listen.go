// Package listen is one listener for both protocols: it looks at the first bytes of a
// connection (PROXY header, TLS, HTTP/2 preface, Remoting frame) and hands it on.
//
// Invariants: a connection that says nothing is cut after a deadline; connections leave
// descriptors to files; bytes that were
// looked at are read again by whoever gets the connection; a PROXY header is believed
// once, before anything else, and never when it claims to come from this machine while
// the connection does not.
//
// Neighbours: node builds it; transport and h2 serve what it gives.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/lifecycle"
)

// defaultPatience is how long a connection may take to say what it is, its TLS handshake
// included.
const defaultPatience = 20 * time.Second

// Splitter accepts connections and sorts them. Set Patience and Log before Run.
type Splitter struct {
	Patience time.Duration
	Log      *slog.Logger // nil: nothing is logged

	inner          net.Listener
	tls            *tls.Config
	most           int // sockets that may be open
	grpc, remoting *side
	tasks          lifecycle.Tasks
}

// New returns a splitter of inner's connections. Without a TLS configuration, connections
// that begin a TLS handshake are closed.
func New(inner net.Listener, config *tls.Config) *Splitter {
	s := &Splitter{Patience: defaultPatience, inner: inner, tls: config, most: mostSockets()}
	s.grpc, s.remoting = newSide(inner.Addr()), newSide(inner.Addr())
	return s
}

// GRPC is the listener of the connections that speak HTTP/2. Closing it closes those that
// come later, not the port.
func (s *Splitter) GRPC() net.Listener { return s.grpc }

// Remoting is the listener of all others.
func (s *Splitter) Remoting() net.Listener { return s.remoting }

// Addr is the address of the port.
func (s *Splitter) Addr() net.Addr { return s.inner.Addr() }

// Run accepts until ctx ends or the port fails. It returns when no connection is in its
// hands any more; those handed on are not its concern.
func (s *Splitter) Run(ctx context.Context) error {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.tasks.Log = s.Log
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { s.inner.Close() })
	defer func() {
		cancel()
		stop()
		s.inner.Close()
		s.tasks.Wait()
		s.grpc.Close()
		s.remoting.Close()
	}()
	pause := time.Duration(0)
	for {
		nc, err := s.inner.Accept()
		if err == nil && s.crowded(nc) {
			nc.Close()
			err = errCrowded
		}
		if err == nil {
			pause = 0
			s.tasks.Go("first bytes", func() { s.sort(ctx, nc) })
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		var ne net.Error
		if err != errCrowded && (!errors.As(err, &ne) || !ne.Temporary()) { //nolint:staticcheck // still what Accept reports
			return err
		}
		// Out of descriptors, most likely: those who leave make room again.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.Log.Warn("accept failed", "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

var errCrowded = errors.New("as many connections are open as the limit of open files allows; the rest is for files")

// crowded reports whether a connection has taken a descriptor that files need: without any, nothing
// can be stored.
func (s *Splitter) crowded(nc net.Conn) (yes bool) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return false
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { yes = tooManySockets(fd, s.most) })
	}
	return yes
}

// sort decides what a connection is and hands it on, or closes it.
func (s *Splitter) sort(ctx context.Context, nc net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	c, to, err := s.decide(ctx, nc)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		s.Log.Debug("connection closed before it said what it is", "remote", nc.RemoteAddr(), "err", err)
		nc.Close()
		return
	}
	select {
	case to.conns <- c:
	case <-to.closed:
		nc.Close()
	case <-ctx.Done():
		nc.Close()
	}
}

var errNoTLS = errors.New("TLS is switched off")

func (s *Splitter) decide(ctx context.Context, nc net.Conn) (*Conn, *side, error) {
	c := &Conn{Conn: nc, raw: nc}
	c.tcp, _ = nc.(*net.TCPConn)
	proxy, plain := true, true
	for {
		switch first(c.head, proxy, plain) {
		case undecided:
			if err := c.more(); err != nil {
				return nil, nil, err
			}
		case isProxy1, isProxy2:
			proxy = false
			if err := c.readProxy(); err != nil {
				return nil, nil, err
			}
		case isTLS:
			if s.tls == nil {
				return nil, nil, errNoTLS
			}
			t := tls.Server(c, s.tls)
			if err := t.HandshakeContext(ctx); err != nil {
				return nil, nil, err
			}
			c = &Conn{Conn: t, raw: nc, remote: c.remote, local: c.local, TLS: true}
			if t.ConnectionState().NegotiatedProtocol == "h2" {
				return c, s.grpc, nil
			}
			proxy, plain = false, false
		case isHTTP2:
			return c, s.grpc, nil
		default:
			return c, s.remoting, nil
		}
	}
}

// side is the listener of one protocol.
type side struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newSide(addr net.Addr) *side {
	return &side{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection of this protocol.
func (l *side) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *side) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address of the port.
func (l *side) Addr() net.Addr { return l.addr }
