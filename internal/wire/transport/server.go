package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Server serves the requests of connections that peers open.
type Server struct {
	endpoint
	listeners struct {
		sync.Mutex
		set map[net.Listener]struct{}
	}
}

// NewServer returns a server; it starts nothing.
func NewServer(o Options) *Server {
	s := &Server{}
	s.init(o, true)
	s.listeners.set = map[net.Listener]struct{}{}
	return s
}

// Serve accepts connections of l and serves them until ctx ends, l fails or Shutdown is
// called; the first and the last are no error. It closes l; the connections go on until
// Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.listeners.Lock()
	s.listeners.set[l] = struct{}{}
	s.listeners.Unlock()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer func() {
		stop()
		l.Close()
		s.listeners.Lock()
		delete(s.listeners.set, l)
		s.listeners.Unlock()
	}()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			c, err := s.open(nc)
			if err != nil {
				return nil
			}
			go s.run(c)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		// Out of descriptors, most likely: those who leave make room again.
		if pause = min(max(2*pause, 5*time.Millisecond), time.Second); !temporary(err) {
			return err
		}
		s.log.Warn("accept failed", "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func temporary(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Temporary() //nolint:staticcheck // still what Accept reports
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
func (s *Server) Conns() []*Conn { return s.each() }

// Shutdown ends the server in order: listeners close; requests that come from now on are
// told to go elsewhere; each connection closes when its earlier requests are answered and
// the answers written; those not done when ctx ends are cut. It returns when all have
// ended, with ctx's error if any had to be cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.refuseNew()
	s.listeners.Lock()
	for l := range s.listeners.set {
		l.Close()
	}
	s.listeners.Unlock()
	for _, c := range s.each() {
		c.drainNow()
	}
	var cut error
	stop := context.AfterFunc(ctx, func() {
		for _, c := range s.each() {
			c.closeWith(ErrShutdown)
		}
	})
	s.running.Wait()
	if !stop() {
		cut = ctx.Err()
	}
	return cut
}
