package transport

import (
	"context"
	"net"

	"github.com/bolidemq/bolide/internal/wire/sock"
)

// Server serves the requests of connections that peers open.
type Server struct {
	endpoint
	listeners sock.Listeners
}

// NewServer returns a server; it starts nothing.
func NewServer(o Options) *Server {
	s := &Server{}
	s.init(o, true)
	return s
}

// Serve accepts connections of l and serves them until ctx ends, l fails or Shutdown is
// called; the first and the last are no error. It closes l; the connections go on until
// Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.listeners.Serve(ctx, l, s.log, func(nc net.Conn) bool {
		c, err := s.open(s.poller.Take(nc))
		if err == nil {
			s.start(c)
		}
		return err == nil
	})
}

// ServeConn serves one connection until it ends: the peer closes it, ctx ends, or the
// server shuts down. An orderly end is no error.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) error {
	c, err := s.open(nc)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, c.Close)()
	return s.run(c)
}

// Conns returns the connections that are open now.
func (s *Server) Conns() []*Conn { return s.conns.All() }

// Shutdown ends the server in order: listeners close; requests that come from now on are
// told to go elsewhere; each connection closes when its earlier requests are answered and
// the answers written; those not done when ctx ends are cut. It returns when all have
// ended, with ctx's error if any had to be cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.conns.Close()
	s.listeners.Close()
	for _, c := range s.conns.All() {
		c.drainNow()
	}
	var cut error
	stop := context.AfterFunc(ctx, func() {
		for _, c := range s.conns.All() {
			c.closeWith(ErrShutdown)
		}
	})
	s.conns.Running.Wait()
	if !stop() {
		cut = ctx.Err()
	}
	return cut
}
