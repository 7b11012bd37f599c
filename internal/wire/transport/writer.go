package transport

import (
	"sync"
	"time"
	"unsafe"

	"github.com/bolidemq/bolide/internal/wire/sock"
)

// buffer is a pooled byte slice; an idle connection holds none for writing.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10)} }}

// keepBuffer is the largest buffer that goes back to the pool.
const keepBuffer = 256 << 10

func putBuffer(b *buffer) {
	if cap(b.b) <= keepBuffer {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}

// splice says that foreign pieces, up to index pieces, follow the out buffer's first at
// bytes.
type splice struct {
	at      int
	pieces  int
	release func()
}

// outLocked returns the buffer that frames are appended to.
func (c *Conn) outLocked() *buffer {
	if c.mu.out == nil {
		c.mu.out = buffers.Get().(*buffer)
	}
	return c.mu.out
}

// pieceLocked appends a body to the pieces, joined with the one before where the two are
// neighbours in one buffer; first is the index of the answer's first piece.
func (c *Conn) pieceLocked(first int, b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(c.mu.pieces); n > first {
		last := c.mu.pieces[n-1]
		if cap(last)-len(last) >= len(b) && unsafe.SliceData(last[len(last):len(last)+1]) == unsafe.SliceData(b) {
			c.mu.pieces[n-1] = last[:len(last)+len(b)]
			return
		}
	}
	c.mu.pieces = append(c.mu.pieces, b)
}

// corkMax is how much may gather while the reader still has frames before a writer is
// woken all the same.
const corkMax = 64 << 10

// queuedLocked accounts for n bytes just queued, unlocks, and sees to it that somebody
// writes them.
func (c *Conn) queuedLocked(n int) {
	c.mu.unsent += n
	if c.mu.unsent > c.owner.limits.UnsentPause {
		c.ample.Store(true)
	}
	if c.mu.unsent > c.owner.limits.Unsent {
		c.mu.Unlock()
		c.closeWith(ErrUnsent)
		return
	}
	if c.mu.writing || (c.mu.corked && c.mu.unsent < corkMax) {
		c.mu.Unlock()
		return
	}
	c.mu.writing = true
	c.owner.conns.Running.Add(1) // the reader has not ended, since the connection is open
	if c.mu.unsent <= sock.Most && c.now.Quiet() {
		if c.writeAtOnceLocked() { // unlocks
			c.owner.conns.Running.Done()
			return
		}
	} else {
		c.mu.Unlock()
	}
	go c.drain()
}

// writeAtOnceLocked unlocks and writes what is queued as far as the peer takes it without
// waiting, in the goroutine of whoever queued it. It reports whether that was all and the
// turn is given back; else it goes on with drain.
func (c *Conn) writeAtOnceLocked() bool {
	out, splices, pieces, size := c.mu.out, c.mu.splices, c.mu.pieces, c.mu.unsent
	c.mu.out, c.mu.splices, c.mu.pieces = nil, nil, nil
	c.mu.Unlock()
	if len(splices) > 0 {
		whole := gather(out, splices, pieces)
		putBuffer(out)
		out = whole
	}
	n := c.now.Try(out.b)
	if n > 0 {
		c.lastActive.Store(time.Now().UnixNano())
	}
	for i := range splices {
		if splices[i].release != nil {
			splices[i].release()
		}
	}
	c.mu.Lock()
	c.mu.unsent -= n
	if n == size {
		putBuffer(out)
	} else {
		c.putBackLocked(out, n)
	}
	if c.mu.closed == nil && c.mu.unsent > 0 {
		c.mu.Unlock()
		return false
	}
	c.idleLocked() // unlocks
	return true
}

// putBackLocked puts what is left of out, from n on, before what was queued meanwhile.
func (c *Conn) putBackLocked(out *buffer, n int) {
	out.b = append(out.b[:0], out.b[n:]...)
	if c.mu.out != nil {
		for i := range c.mu.splices {
			c.mu.splices[i].at += len(out.b)
		}
		out.b = append(out.b, c.mu.out.b...)
		putBuffer(c.mu.out)
	}
	c.mu.out = out
}

// drain writes until nothing is left. The caller has set mu.writing for it and counted it
// among what the endpoint has running.
func (c *Conn) drain() {
	defer c.owner.conns.Running.Done()
	for c.writeOnce() {
	}
}

// writeOnce writes all that is queued now, in one call. It reports whether more has been
// queued meanwhile; if not, it has given mu.writing back.
func (c *Conn) writeOnce() (more bool) {
	c.mu.Lock()
	if c.mu.closed != nil || c.mu.unsent == 0 {
		c.idleLocked() // unlocks
		return false
	}
	out, splices, pieces, n := c.mu.out, c.mu.splices, c.mu.pieces, c.mu.unsent
	c.mu.out = nil
	c.mu.splices, c.mu.pieces = c.spareSplices[:0], c.sparePieces[:0]
	c.mu.Unlock()

	c.writeSize.Store(int64(n))
	c.writeSince.Store(time.Now().UnixNano())
	err := c.write(out, splices, pieces)
	c.lastActive.Store(time.Now().UnixNano())
	c.writeSince.Store(0)

	for i := range splices {
		if splices[i].release != nil {
			splices[i].release()
		}
	}
	clear(splices)
	clear(pieces)
	c.spareSplices, c.sparePieces = splices[:0], pieces[:0]
	putBuffer(out)
	if err != nil {
		c.closeWith(err)
	}
	c.mu.Lock()
	c.mu.unsent -= n
	if c.mu.paused && c.mu.unsent <= c.owner.limits.UnsentPause/2 {
		c.resume.Signal()
	}
	if c.mu.closed == nil && c.mu.unsent > 0 {
		c.mu.Unlock()
		return true
	}
	c.idleLocked() // unlocks
	return false
}

// idleLocked ends a writer's turn and unlocks.
func (c *Conn) idleLocked() {
	c.mu.writing = false
	drained := c.drainedLocked()
	closed := c.mu.closed != nil
	c.mu.Unlock()
	if closed {
		c.dropUnsent()
	} else if drained {
		c.closeWith(ErrShutdown)
	}
}

// write sends out with the pieces spliced in.
func (c *Conn) write(out *buffer, splices []splice, pieces [][]byte) error {
	if len(splices) == 0 {
		_, err := c.nc.Write(out.b)
		return err
	}
	if c.vectored == nil {
		// Without vector writes each piece would be a write of its own (under TLS, a
		// record of its own): gather them first.
		whole := gather(out, splices, pieces)
		_, err := c.nc.Write(whole.b)
		putBuffer(whole)
		return err
	}
	vector := c.vectorStore[:0]
	from, piece := 0, 0
	for _, s := range splices {
		vector = append(vector, out.b[from:s.at])
		vector = append(vector, pieces[piece:s.pieces]...)
		from, piece = s.at, s.pieces
	}
	if from < len(out.b) {
		vector = append(vector, out.b[from:])
	}
	c.vectorStore = vector
	err := c.vectored(vector)
	clear(c.vectorStore)
	return err
}

// gather copies out with the pieces spliced in, and gives nothing back.
func gather(out *buffer, splices []splice, pieces [][]byte) *buffer {
	whole := buffers.Get().(*buffer)
	from, piece := 0, 0
	for _, s := range splices {
		whole.b = append(whole.b, out.b[from:s.at]...)
		for ; piece < s.pieces; piece++ {
			whole.b = append(whole.b, pieces[piece]...)
		}
		from = s.at
	}
	whole.b = append(whole.b, out.b[from:]...)
	return whole
}

// dropUnsent releases what a closed connection will never send. Nobody writes any more.
func (c *Conn) dropUnsent() {
	c.mu.Lock()
	if c.mu.writing {
		c.mu.Unlock() // the writer will come by here
		return
	}
	out, splices := c.mu.out, c.mu.splices
	c.mu.out, c.mu.splices, c.mu.pieces, c.mu.unsent = nil, nil, nil, 0
	c.mu.Unlock()
	for i := range splices {
		if splices[i].release != nil {
			splices[i].release()
		}
	}
	if out != nil {
		putBuffer(out)
	}
}
