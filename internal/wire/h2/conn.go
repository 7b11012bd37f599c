package h2

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/peer"

	"github.com/bolidemq/bolide/internal/wire/sock"
)

// Conn is one connection of a peer.
//
// Locks: mu is the only one and is held for the framing of what is sent at most, never
// across a read, a write, a handler or a hook. Reading is the reader's alone, and so is
// every call's part that says so. Closing only marks the connection and closes the socket;
// its calls are ended by the reader on its way out, so hooks never run inside somebody's
// answer.
type Conn struct {
	nc            net.Conn
	remote, local netip.AddrPort
	server        *Server
	ctx           context.Context // of the calls that run as goroutines; carries the peer
	cancel        context.CancelFunc

	lastRead   atomic.Int64 // ns
	pinged     atomic.Int64 // ns; when the peer was asked, 0 when it need not answer
	writeSince atomic.Int64 // ns; when the running write began, 0 when none runs
	writeSize  atomic.Int64

	resume sync.Cond // on mu: unsent bytes have gone down, or closed

	now sock.Writer // of whoever has set mu.writing

	in       sock.Buffer
	need     int  // the length of the frame that is not whole yet
	inRound  bool // the frames that are being handled have opened a round
	prefaced bool // the preface has been read
	lastID   uint32
	block    headerBlock
	granted  int // what the peer may still send
	taken    int // what it sent that was not granted anew

	mu struct {
		sync.Mutex
		closed  error // why; nil while open
		leaving bool  // GOAWAY was sent: no new calls
		corked  bool  // the reader has more frames: let answers gather
		writing bool
		paused  bool

		out     *Buffer
		unsent  int // bytes in out and the running write
		headers responseHeaders

		window        int64 // what the peer takes on this connection
		initialWindow int64 // and of a new answer
		maxFrame      int

		calls   map[uint32]*Call
		held    int     // bytes of their headers
		blocked []*Call // whose answers wait for a window or for room, oldest first
		running int     // handlers that are goroutines
	}
}

func newConn(s *Server, nc net.Conn) *Conn {
	c := &Conn{nc: nc, server: s, remote: sock.AddrPort(nc.RemoteAddr()), local: sock.AddrPort(nc.LocalAddr()), granted: connWindow}
	c.ctx, c.cancel = context.WithCancel(peer.NewContext(context.Background(), &peer.Peer{Addr: nc.RemoteAddr(), LocalAddr: nc.LocalAddr()}))
	c.resume.L = &c.mu
	c.now = sock.NewWriter(nc)
	c.block.decoder = hpack.NewDecoder(defaultHeaderSize, c.block.emit)
	c.block.decoder.SetMaxStringLength(2 * s.limits.Headers) // above Headers the call fails, above this the connection
	c.block.most = s.limits.Headers
	c.mu.window, c.mu.initialWindow, c.mu.maxFrame = defaultWindow, defaultWindow, maxFrame
	c.mu.calls = map[uint32]*Call{}
	return c
}

// greet queues what a server says first.
func (c *Conn) greet() {
	c.mu.Lock()
	out := c.outLocked()
	before := len(out.B)
	out.B = appendSettings(out.B,
		settingMaxStreams, uint32(c.server.limits.Streams),
		settingInitialWindowSize, streamWindow,
		settingMaxHeaderListSize, uint32(c.server.limits.Headers))
	out.B = appendWindowUpdate(out.B, 0, connWindow-defaultWindow)
	c.queuedLocked(len(out.B) - before)
}

func (c *Conn) closeWith(err error) {
	c.mu.Lock()
	if c.mu.closed != nil {
		c.mu.Unlock()
		return
	}
	c.mu.closed = err
	c.resume.Broadcast()
	c.mu.Unlock()
	if err == ErrShutdown {
		c.nc.Close()
	} else {
		sock.Cut(c.nc) // in the goroutine of whoever answers: it must not wait
	}
}

// leave tells the peer to make no more calls here; the connection closes when those it has
// are done.
func (c *Conn) leave() {
	c.mu.Lock()
	if c.mu.leaving || c.mu.closed != nil {
		c.mu.Unlock()
		return
	}
	c.mu.leaving = true
	out := c.outLocked()
	before := len(out.B)
	// A peer may have calls on their way that were not read yet: they are refused one by
	// one, which tells it to try them elsewhere.
	out.B = appendGoAway(out.B, maxWindow, noError, ErrShutdown.Error())
	c.queuedLocked(len(out.B) - before)
}

// doneLocked reports whether a connection that leaves has nothing left to do.
func (c *Conn) doneLocked() bool {
	return c.mu.leaving && c.mu.closed == nil && !c.mu.corked && !c.mu.writing && len(c.mu.calls) == 0 && c.mu.unsent == 0
}

// addLocked takes a call in, unless there are too many, or the headers of those there are take
// too much room: a long poll keeps its own for as long as it waits.
func (c *Conn) addLocked(k *Call) bool {
	limits := &c.server.limits
	if c.mu.leaving || len(c.mu.calls) >= limits.Streams || c.mu.running >= limits.Streams || c.mu.held+k.size > limits.AllHeaders {
		return false
	}
	k.window = c.mu.initialWindow
	c.mu.calls[k.id] = k
	c.mu.held += k.size
	return true
}

// dropLocked takes a call out.
func (c *Conn) dropLocked(k *Call) {
	delete(c.mu.calls, k.id)
	c.mu.held -= k.size
}

// end runs on the reader after the last frame: whoever still waits is told.
func (c *Conn) end() {
	c.cancel()
	c.block.reset()
	c.mu.Lock()
	var out *Buffer
	if !c.mu.writing {
		out, c.mu.out = c.mu.out, nil
	}
	calls := c.mu.calls
	c.mu.calls, c.mu.blocked, c.mu.held = map[uint32]*Call{}, nil, 0
	for _, k := range calls {
		k.gone = true
	}
	c.mu.Unlock()
	if out != nil {
		out.Free()
	}
	for _, k := range calls {
		k.dropped()
	}
}
