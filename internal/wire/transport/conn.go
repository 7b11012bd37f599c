package transport

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/sock"
)

// Conn is one connection, of a Server or of a Client: both ends may send requests, and
// the numbers (opaque) of the two directions are separate.
//
// Locks: mu is the only one and is held for the encoding of a frame at most, never across
// a read, a write, a handler or a hook. Reading is the reader's alone (buf, seen,
// request, names). Whoever has set mu.writing is the writer and alone touches spareSplices,
// sparePieces, vector and vectorStore. Closing only marks the connection and closes the
// socket; hooks and waiting calls are ended by the reader on its way out, so they never
// run inside somebody's Reply.
type Conn struct {
	nc       net.Conn
	vectored func(net.Buffers) error // nil when nc can't do vector writes
	remote   netip.AddrPort
	local    netip.AddrPort
	owner    *endpoint

	lastActive atomic.Int64 // ns; last read or write that succeeded
	writeSince atomic.Int64 // ns; when the running write began, 0 when none runs
	writeSize  atomic.Int64
	draining   atomic.Bool // the server shuts down: no new requests; set under mu

	resume sync.Cond   // on mu: unsent bytes have gone down, or closed
	ample  atomic.Bool // more was unsent than Limits.UnsentPause since answers began to gather

	now          sock.Writer // of whoever has set mu.writing
	spareSplices []splice
	sparePieces  [][]byte
	vectorStore  [][]byte

	buf     sock.Buffer
	need    int    // the length of the frame that is not whole yet
	seen    uint64 // two-way requests read so far; mu.received follows when uncorked
	inRound bool   // the frames that are being handled have opened a round
	request Request
	names   remoting.Names

	mu struct {
		sync.Mutex
		closed  error // why; nil while open
		corked  bool  // the reader has more frames: let answers gather
		writing bool
		paused  bool

		out     *buffer
		splices []splice
		pieces  [][]byte
		unsent  int // bytes in out, pieces and the running write

		received, answered uint64 // two-way requests of the peer

		lastOpaque int32
		calls      map[int32]*call
		expiry     expiry

		hooks  []func()
		ended  bool // hooks have run
		values map[any]any
	}
}

func newConn(owner *endpoint, nc net.Conn) *Conn {
	c := &Conn{nc: nc, owner: owner, remote: sock.AddrPort(nc.RemoteAddr()), local: sock.AddrPort(nc.LocalAddr())}
	c.resume.L = &c.mu
	c.vectored = sock.Vectored(nc)
	c.now = sock.NewWriter(nc)
	return c
}

// RemoteAddr is the peer's address; behind a proxy that says so, the client's own.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// LocalAddr is our address as the peer reached it.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// Closed reports whether the connection is closed or about to be.
func (c *Conn) Closed() bool { return c.Err() != nil }

// Err returns why the connection is closed, nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.closed
}

// Close cuts the connection; queued answers are dropped.
func (c *Conn) Close() { c.closeWith(ErrClosed) }

func (c *Conn) closeWith(err error) {
	c.mu.Lock()
	if c.mu.closed != nil {
		c.mu.Unlock()
		return
	}
	c.mu.closed = err
	c.draining.Store(true)
	c.resume.Broadcast()
	c.mu.Unlock()
	if err == ErrShutdown {
		c.nc.Close()
	} else {
		sock.Cut(c.nc) // in the goroutine of whoever answers: it must not wait
	}
}

// OnClose registers f to run once after the connection has closed, on no caller's
// goroutine that holds a lock: on the connection's reader, or at once if it has ended.
func (c *Conn) OnClose(f func()) {
	c.mu.Lock()
	if !c.mu.ended {
		c.mu.hooks = append(c.mu.hooks, f)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	f()
}

// SetValue keeps a value on the connection under key.
func (c *Conn) SetValue(key, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.values == nil {
		c.mu.values = map[any]any{}
	}
	c.mu.values[key] = value
}

// Value returns what SetValue kept under key, nil when nothing.
func (c *Conn) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.values[key]
}

// drainedLocked reports whether a connection that shuts down has nothing left to do.
func (c *Conn) drainedLocked() bool {
	return c.draining.Load() && c.mu.closed == nil && !c.mu.corked && !c.mu.writing &&
		c.mu.answered == c.mu.received && c.mu.unsent == 0
}

// drainNow begins the end of a connection: new requests are refused, and it closes when
// all earlier ones are answered.
func (c *Conn) drainNow() {
	c.mu.Lock()
	c.draining.Store(true)
	drained := c.drainedLocked()
	c.mu.Unlock()
	if drained {
		c.closeWith(ErrShutdown)
	}
}

// end runs on the reader after the last frame.
func (c *Conn) end() {
	c.dropUnsent()
	c.mu.Lock()
	err := c.mu.closed
	calls := c.mu.calls
	c.mu.calls = nil
	c.mu.expiry.stop()
	hooks := c.mu.hooks
	c.mu.hooks = nil
	c.mu.ended = true
	c.mu.Unlock()
	for _, k := range calls {
		k.done(nil, err)
	}
	for _, f := range hooks {
		f()
	}
}
