package poll

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bolidemq/bolide/internal/wire/sock"
)

// Conn is a connection that a Poller watches. Read never waits; Write does.
type Conn struct {
	p             *Poller
	fd            int
	number        int32 // tells connections with the same descriptor apart
	remote, local net.Addr
	head          []byte // read before the connection was taken over

	uses  atomic.Int32 // of the descriptor; less than 0 when it is to be closed
	state atomic.Int32
	hup   atomic.Bool // the peer has said its last

	begun atomic.Bool // Serve was called; ready is set

	// Of whoever serves the connection.
	ready   func() bool
	drained bool
	turn    uint64

	waiting  atomic.Bool   // a write waits for room
	room     chan struct{} // there may be room
	closed   chan struct{}
	deadline atomic.Int64 // of writes, ns; 0 for none
}

// States of being served.
const (
	atRest int32 = iota
	served
	servedAgain // and something has happened meanwhile
)

var lastNumber atomic.Int32

const closing = -1 << 30

func (p *Poller) take(nc net.Conn) *Conn {
	tcp := sock.TCP(nc)
	if tcp == nil {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	fd := -1
	if err := raw.Control(func(old uintptr) { fd, _ = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || fd < 0 {
		return nil
	}
	c := &Conn{p: p, fd: fd, number: lastNumber.Add(1), remote: nc.RemoteAddr(), local: nc.LocalAddr(),
		room: make(chan struct{}, 1), closed: make(chan struct{})}
	c.state.Store(served)
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		unix.Close(fd)
		return nil
	}
	p.mu.conns[int32(fd)] = c
	p.mu.Unlock()
	if h, ok := nc.(interface{ Head() []byte }); ok {
		c.head = h.Head()
	}
	tcp.Close() // the runtime watches it no more
	return c
}

// Serve makes ready be called at once, and then whenever there may be something to read, by
// one goroutine at a time, until it returns false. It must read until there is nothing.
func (c *Conn) Serve(ready func() bool) {
	c.ready = ready
	c.begun.Store(true)
	var err error
	if c.use() {
		err = unix.EpollCtl(c.p.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{
			Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(c.fd), Pad: c.number,
		})
		c.done()
	}
	if err != nil {
		c.Close()
	}
	c.p.run(func() { c.serve(0) })
}

// happened sees to what the kernel says of the connection.
func (c *Conn) happened(events uint32, turn uint64) {
	if events&unix.EPOLLOUT != 0 && c.waiting.Load() {
		c.tell()
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.hup.Store(true)
	}
	if events&^unix.EPOLLOUT != 0 {
		c.again(turn)
	}
}

// again serves the connection, or has its server do so once more.
func (c *Conn) again(turn uint64) {
	for {
		switch c.state.Load() {
		case atRest:
			if c.state.CompareAndSwap(atRest, served) {
				c.serve(turn)
				return
			}
		case served:
			if c.state.CompareAndSwap(served, servedAgain) {
				return
			}
		default:
			return
		}
	}
}

func (c *Conn) serve(turn uint64) {
	c.turn = turn
	ended := false
	defer func() {
		if !ended { // it panicked: its end is still heard of when it is closed
			c.state.Store(atRest)
		}
	}()
	for !ended {
		c.drained = false
		if !c.ready() {
			ended = true // and never again
		} else if c.state.CompareAndSwap(served, atRest) {
			ended = true
		} else {
			c.state.Store(served)
		}
	}
}

func (c *Conn) tell() {
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// use keeps the descriptor open until done is called.
func (c *Conn) use() bool {
	for {
		n := c.uses.Load()
		if n < 0 {
			return false
		}
		if c.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (c *Conn) done() {
	if c.uses.Add(-1) == closing {
		unix.Close(c.fd)
	}
}

// Read returns what has come, or ErrAgain.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	if c.drained {
		return 0, ErrAgain
	}
	if !c.use() {
		return 0, net.ErrClosed
	}
	defer c.done()
	for {
		n, err := unix.Read(c.fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			c.drained = true
			return 0, ErrAgain
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		// A read that leaves room has taken all there was; what comes later is told.
		if n < len(b) && !c.hup.Load() {
			c.drained = true
		}
		if n >= plenty {
			c.p.release(c.turn)
		}
		return n, nil
	}
}

// TryWrite writes what the socket takes at once and returns how much that was.
func (c *Conn) TryWrite(b []byte) int {
	if !c.use() {
		return 0
	}
	defer c.done()
	n, err := unix.Write(c.fd, b)
	if err != nil {
		return 0
	}
	return n
}

// Write writes all of b, and waits where the peer does not take it.
func (c *Conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		m, err := c.write(func() (int, error) { return unix.Write(c.fd, b[n:]) })
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// WriteBuffers writes all of b, which it uses up.
func (c *Conn) WriteBuffers(b net.Buffers) error {
	for len(b) > 0 {
		m, err := c.write(func() (int, error) { return unix.Writev(c.fd, b[:min(len(b), maxVector)]) })
		if err != nil {
			return err
		}
		for len(b) > 0 && m >= len(b[0]) {
			m -= len(b[0])
			b = b[1:]
		}
		if m > 0 {
			b[0] = b[0][m:]
		}
	}
	return nil
}

const maxVector = 1024 // the kernel's IOV_MAX

func (c *Conn) write(write func() (int, error)) (int, error) {
	if !c.use() {
		return 0, net.ErrClosed
	}
	defer c.done()
	defer c.waiting.Store(false)
	for {
		n, err := write()
		switch {
		case err == unix.EINTR:
			continue
		case err == nil:
			return n, nil
		case err != unix.EAGAIN:
			return 0, os.NewSyscallError("write", err)
		}
		if !c.waiting.Swap(true) {
			continue // there may be room since we said that we wait
		}
		if err := c.wait(); err != nil {
			return 0, err
		}
	}
}

// wait waits for room in the socket.
func (c *Conn) wait() error {
	var late <-chan time.Time
	if d := c.deadline.Load(); d != 0 {
		t := time.NewTimer(time.Until(time.Unix(0, d)))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-c.room:
		return nil
	case <-c.closed:
		return net.ErrClosed
	case <-late:
		return os.ErrDeadlineExceeded
	}
}

// Close ends the connection: what was written is still sent.
func (c *Conn) Close() error {
	if !c.use() {
		return net.ErrClosed
	}
	for {
		n := c.uses.Load()
		if n < 0 {
			c.done()
			return net.ErrClosed
		}
		if c.uses.CompareAndSwap(n, n+closing) {
			break
		}
	}
	close(c.closed)
	c.p.mu.Lock()
	delete(c.p.mu.conns, int32(c.fd))
	c.p.mu.Unlock()
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	c.hup.Store(true)
	if c.begun.Load() {
		c.p.run(func() { c.again(0) }) // to hear of it
	}
	c.done()
	return nil
}

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// LocalAddr is ours.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// SetDeadline implements net.Conn; Read never waits.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetWriteDeadline(t) }

// SetReadDeadline implements net.Conn; Read never waits.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline says until when writes may wait, those that wait now included.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	var ns int64
	if !t.IsZero() {
		ns = t.UnixNano()
	}
	c.deadline.Store(ns)
	c.tell() // who waits looks again
	return nil
}
