package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// PipeNetwork is a network in memory: connections are pairs of buffers, addresses are
// real in form only. It uses mutexes, channels and timers alone, so it works inside a
// testing/synctest bubble.
type PipeNetwork struct {
	mu struct {
		sync.Mutex
		listeners map[netip.AddrPort]*pipeListener
		lastPort  uint16
	}
}

// NewPipeNetwork returns an empty network.
func NewPipeNetwork() *PipeNetwork {
	n := &PipeNetwork{}
	n.mu.listeners = map[netip.AddrPort]*pipeListener{}
	n.mu.lastPort = 40000
	return n
}

// pipeBuffer is how many bytes wait in one direction before a write waits, as in a socket.
const pipeBuffer = 256 << 10

var errRefused = errors.New("connection refused")

// Listen takes an address, "127.0.0.1:10911"; port 0 takes a free one.
func (n *PipeNetwork) Listen(addr string) (net.Listener, error) {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.Port() == 0 {
		n.mu.lastPort++
		a = netip.AddrPortFrom(a.Addr(), n.mu.lastPort)
	}
	if n.mu.listeners[a] != nil {
		return nil, fmt.Errorf("listen %s: address already in use", addr)
	}
	l := &pipeListener{network: n, addr: a, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.listeners[a] = l
	return l, nil
}

// Dial connects to a listener of this network.
func (n *PipeNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.mu.listeners[a]
	n.mu.lastPort++
	from := netip.AddrPortFrom(a.Addr(), n.mu.lastPort)
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: net.TCPAddrFromAddrPort(a), Err: errRefused}
	}
	here, there := newPipe(from, a)
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: net.TCPAddrFromAddrPort(a), Err: errRefused}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	network *PipeNetwork
	addr    netip.AddrPort
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept waits for the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close frees the address.
func (l *pipeListener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.mu.listeners, l.addr)
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

// Addr returns the listener's address.
func (l *pipeListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }

// pipeConn is one end of a connection.
type pipeConn struct {
	in, out       *pipeHalf
	local, remote netip.AddrPort
}

func newPipe(a, b netip.AddrPort) (*pipeConn, *pipeConn) {
	ab, ba := newHalf(), newHalf()
	return &pipeConn{in: ba, out: ab, local: a, remote: b}, &pipeConn{in: ab, out: ba, local: b, remote: a}
}

// pipeHalf is one direction. changed is on mu.
type pipeHalf struct {
	changed sync.Cond
	mu      struct {
		sync.Mutex
		data              []byte
		writeEnd, readEnd bool // closed by the writer, by the reader
		read, write       pipeDeadline
	}
}

type pipeDeadline struct {
	timer  *time.Timer
	passed bool
}

func newHalf() *pipeHalf {
	h := &pipeHalf{}
	h.changed.L = &h.mu
	return h
}

func (h *pipeHalf) set(d *pipeDeadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.passed = false
	if !t.IsZero() {
		if wait := time.Until(t); wait <= 0 {
			d.passed = true
		} else {
			var timer *time.Timer
			timer = time.AfterFunc(wait, func() {
				h.mu.Lock()
				if d.timer == timer {
					d.passed = true
				}
				h.mu.Unlock()
				h.changed.Broadcast()
			})
			d.timer = timer
		}
	}
	h.changed.Broadcast()
}

// Read waits for bytes.
func (c *pipeConn) Read(b []byte) (int, error) {
	h := c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.mu.readEnd:
			return 0, net.ErrClosed
		case h.mu.read.passed:
			return 0, os.ErrDeadlineExceeded
		case len(h.mu.data) > 0:
			n := copy(b, h.mu.data)
			h.mu.data = h.mu.data[:copy(h.mu.data, h.mu.data[n:])]
			h.changed.Broadcast()
			return n, nil
		case h.mu.writeEnd:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

// Write waits for room.
func (c *pipeConn) Write(b []byte) (n int, err error) {
	h := c.out
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.mu.writeEnd:
			return n, net.ErrClosed
		case h.mu.readEnd:
			return n, io.ErrClosedPipe
		case h.mu.write.passed:
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if room := min(pipeBuffer-len(h.mu.data), len(b)); room > 0 {
			h.mu.data = append(h.mu.data, b[:room]...)
			n, b = n+room, b[room:]
			h.changed.Broadcast()
			continue
		}
		h.changed.Wait()
	}
}

// Close ends both directions; the peer still reads what was written.
func (c *pipeConn) Close() error {
	c.out.mu.Lock()
	c.out.mu.writeEnd = true
	c.out.mu.Unlock()
	c.out.changed.Broadcast()
	c.in.mu.Lock()
	c.in.mu.readEnd = true
	c.in.mu.data = nil
	c.in.mu.Unlock()
	c.in.changed.Broadcast()
	return c.SetDeadline(time.Time{})
}

// LocalAddr returns this end's address.
func (c *pipeConn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local) }

// RemoteAddr returns the other end's address.
func (c *pipeConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// SetDeadline sets both deadlines.
func (c *pipeConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline ends reads at t.
func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.in.set(&c.in.mu.read, t)
	return nil
}

// SetWriteDeadline ends writes at t.
func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.out.set(&c.out.mu.write, t)
	return nil
}
