package transport

import (
	"errors"
	"io"
	"log/slog"
	"net"
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

	conns sock.Conns[*Conn]
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
}

// open takes a connection in; run must follow.
func (e *endpoint) open(nc net.Conn) (*Conn, error) {
	c := newConn(e, nc)
	c.lastActive.Store(time.Now().UnixNano())
	if !e.conns.Add(c, min(e.limits.Idle, e.limits.Stall), e.sweep) {
		nc.Close()
		return nil, ErrShutdown
	}
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
	defer e.conns.Running.Done()
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
	e.conns.Remove(c)
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
	for _, c := range e.conns.All() {
		due, why := time.Unix(0, c.lastActive.Load()).Add(e.limits.Idle), ErrIdle
		if since := c.writeSince.Load(); since != 0 {
			due, why = time.Unix(0, since).Add(e.limits.Stall*time.Duration(1+c.writeSize.Load()>>20)), ErrStalled
		}
		if !due.After(now) {
			c.closeWith(why)
		} else if due.Before(next) {
			next = due
		}
	}
	e.conns.Again(next.Sub(now))
}
