package transport

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/wire/poll"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/sock"
)

// endpoint is what a Server's or a Client's connections share: options, the set of them,
// and one timer that closes idle and stalled ones.
type endpoint struct {
	server  bool
	handler Handler
	onOpen  func(*Conn)
	onClose func(*Conn)
	events  Events
	limits  Limits
	poller  *poll.Poller
	round   Round
	log     *slog.Logger

	mu struct {
		sync.Mutex
		conns  map[*Conn]struct{}
		closed bool
		sweep  *time.Timer
	}
	running sync.WaitGroup
}

func (e *endpoint) init(o Options, server bool) {
	e.server = server
	e.handler, e.onOpen, e.onClose, e.events = o.Handler, o.OnOpen, o.OnClose, o.Events
	e.round = o.Round
	e.limits, e.poller, e.log = o.Limits.withDefaults(), o.Poller, o.Log
	if e.handler == nil {
		e.handler = refuse
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.mu.conns = map[*Conn]struct{}{}
}

// open takes a connection in; run must follow.
func (e *endpoint) open(nc net.Conn) (*Conn, error) {
	c := newConn(e, nc)
	c.lastActive.Store(time.Now().UnixNano())
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		nc.Close()
		return nil, ErrShutdown
	}
	e.mu.conns[c] = struct{}{}
	e.running.Add(1)
	if e.mu.sweep == nil {
		e.mu.sweep = time.AfterFunc(min(e.limits.Idle, e.limits.Stall), e.sweep)
	}
	e.mu.Unlock()
	return c, nil
}

// start has the connection read, until it ends.
func (e *endpoint) start(c *Conn) {
	if polled, ok := c.nc.(*poll.Conn); ok {
		polled.Through(func() { e.begin(c) }, c.readLoop, func(err error) { _ = e.finish(c, err) })
	} else {
		go e.run(c)
	}
}

// run is the connection's reader, until it ends.
func (e *endpoint) run(c *Conn) error {
	e.begin(c)
	return e.finish(c, c.readLoop())
}

// begin comes before the first frame.
func (e *endpoint) begin(c *Conn) {
	c.request.Conn = c
	c.request.UseNames(&c.names)
	if e.events.Opened != nil {
		e.events.Opened(c)
	}
	if e.onOpen != nil {
		e.onOpen(c)
	}
}

// finish comes after the last frame; err is why that was the last.
func (e *endpoint) finish(c *Conn, err error) error {
	defer e.running.Done()
	c.buf = sock.Buffer{} // who keeps a closed connection for a while keeps no more than that
	c.closeWith(err)
	err = c.Err()
	c.end()
	if e.onClose != nil {
		e.onClose(c)
	}
	if e.events.Closed != nil {
		e.events.Closed(c, err)
	}
	e.mu.Lock()
	delete(e.mu.conns, c)
	if len(e.mu.conns) == 0 && e.mu.sweep != nil {
		e.mu.sweep.Stop()
		e.mu.sweep = nil
	}
	e.mu.Unlock()
	switch {
	case errors.Is(err, remoting.ErrFrame), errors.Is(err, ErrStalled), errors.Is(err, ErrUnsent):
		e.log.Warn("connection cut", "remote", c.remote, "err", err)
	case err == io.EOF || errors.Is(err, ErrShutdown) || errors.Is(err, ErrIdle) || errors.Is(err, ErrClosed):
		err = nil
	}
	return err
}

// sweep closes connections that were idle or stalled too long and sets the timer to the
// next moment at which one could be.
func (e *endpoint) sweep() {
	now := time.Now()
	next := now.Add(min(e.limits.Idle, e.limits.Stall))
	var idle, stalled []*Conn
	e.mu.Lock()
	for c := range e.mu.conns {
		due := time.Unix(0, c.lastActive.Load()).Add(e.limits.Idle)
		to := &idle
		if since := c.writeSince.Load(); since != 0 {
			due = time.Unix(0, since).Add(e.limits.Stall * time.Duration(1+c.writeSize.Load()>>20))
			to = &stalled
		}
		if !due.After(now) {
			*to = append(*to, c)
		} else if due.Before(next) {
			next = due
		}
	}
	if len(e.mu.conns) > 0 && e.mu.sweep != nil {
		e.mu.sweep.Reset(next.Sub(now))
	} else {
		e.mu.sweep = nil
	}
	e.mu.Unlock()
	for _, c := range idle {
		c.closeWith(ErrIdle)
	}
	for _, c := range stalled {
		c.closeWith(ErrStalled)
	}
}

// each returns the connections that are open now.
func (e *endpoint) each() []*Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*Conn, 0, len(e.mu.conns))
	for c := range e.mu.conns {
		all = append(all, c)
	}
	return all
}

// refuseNew makes open fail from now on.
func (e *endpoint) refuseNew() {
	e.mu.Lock()
	e.mu.closed = true
	e.mu.Unlock()
}
