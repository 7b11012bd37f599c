package h2

import (
	"time"

	"github.com/bolidemq/bolide/internal/wire/sock"
)

// outLocked returns the buffer that frames are appended to.
func (c *Conn) outLocked() *Buffer {
	if c.mu.out == nil {
		c.mu.out = NewBuffer()
	}
	return c.mu.out
}

const (
	// corkMax is how much may gather while the reader still has frames before a writer is
	// woken all the same.
	corkMax = 64 << 10
	// inlineWrite is how much the reader writes itself: what a socket takes at once.
	inlineWrite = 64 << 10
)

// queuedLocked accounts for n bytes just queued, unlocks, and sees to it that somebody
// writes them.
func (c *Conn) queuedLocked(n int) {
	c.mu.unsent += n
	if c.mu.writing || c.mu.closed != nil || c.mu.unsent == 0 || (c.mu.corked && c.mu.unsent < corkMax) {
		done := c.doneLocked()
		c.mu.Unlock()
		if done {
			c.closeWith(ErrShutdown)
		}
		return
	}
	c.mu.writing = true
	c.server.conns.Running.Add(1) // the reader has not ended, since the connection is open
	if c.mu.unsent <= sock.Most && c.now.Quiet() {
		if c.writeAtOnceLocked() { // unlocks
			c.server.conns.Running.Done()
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
	out := c.mu.out
	c.mu.out = nil
	c.mu.Unlock()
	n := c.now.Try(out.B)
	c.mu.Lock()
	c.sentLocked(n)
	if n == len(out.B) {
		out.Free()
	} else {
		out.B = append(out.B[:0], out.B[n:]...)
		if c.mu.out != nil {
			out.B = append(out.B, c.mu.out.B...)
			c.mu.out.Free()
		}
		c.mu.out = out
	}
	if c.mu.unsent > 0 && c.mu.closed == nil {
		c.mu.Unlock()
		return false
	}
	c.idleLocked() // unlocks
	return true
}

// uncork writes what has gathered: itself when it is little, else by a writer.
func (c *Conn) uncork() {
	c.mu.Lock()
	c.mu.corked = false
	if c.mu.unsent == 0 || c.mu.writing || c.mu.closed != nil {
		done := c.doneLocked()
		c.mu.Unlock()
		if done {
			c.closeWith(ErrShutdown)
		}
		return
	}
	c.mu.writing = true
	inline := c.mu.unsent <= inlineWrite
	c.mu.Unlock()
	if !inline || c.writeOnce() {
		c.server.conns.Running.Add(1)
		go c.drain()
	}
}

// drain writes until nothing is left. The caller has set mu.writing for it and counted it
// among what the server has running.
func (c *Conn) drain() {
	defer c.server.conns.Running.Done()
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
	out := c.mu.out
	c.mu.out = nil
	c.mu.Unlock()

	n := len(out.B)
	c.writeSize.Store(int64(n))
	c.writeSince.Store(time.Now().UnixNano())
	_, err := c.nc.Write(out.B)
	c.writeSince.Store(0)
	out.Free()
	if err != nil {
		c.closeWith(err)
	}
	c.mu.Lock()
	c.sentLocked(n)
	sent := c.pushLocked()
	if more = c.mu.closed == nil && c.mu.unsent > 0; more {
		c.mu.Unlock()
	} else {
		c.idleLocked() // unlocks
	}
	tell(sent)
	return more
}

// sentLocked notes that n bytes are written, and lets the reader go on when it waits for
// that.
func (c *Conn) sentLocked(n int) {
	c.mu.unsent -= n
	if c.mu.paused && c.mu.unsent <= c.server.limits.Unsent/2 {
		c.resume.Signal()
	}
}

// idleLocked ends a writer's turn, gives back the buffer, and unlocks.
func (c *Conn) idleLocked() {
	c.mu.writing = false
	out := c.mu.out
	c.mu.out = nil
	done := c.doneLocked()
	c.mu.Unlock()
	if out != nil {
		out.Free()
	}
	if done {
		c.closeWith(ErrShutdown)
	}
}

// pushBlocked queues what windows allow by now, and unlocks.
func (c *Conn) pushBlocked() {
	sent := c.pushLocked()
	c.queuedLocked(0)
	tell(sent)
}

// pushCall queues what a call's own window allows by now, and unlocks. The call stays in
// blocked, which the next pushLocked puts right.
func (c *Conn) pushCall(k *Call) {
	var sent func(bool)
	if k.blocked && c.mu.closed == nil && k.pushLocked() && k.over {
		sent = k.sent
	}
	c.queuedLocked(0)
	if sent != nil {
		sent(true)
	}
}

// pushLocked queues what waiting answers the windows and the room in the buffer allow,
// oldest first, and returns the calls that are complete by that and want to know.
func (c *Conn) pushLocked() (sent []*Call) {
	if len(c.mu.blocked) == 0 || c.mu.closed != nil {
		return nil
	}
	still := c.mu.blocked[:0]
	for _, k := range c.mu.blocked {
		switch {
		case k.gone, k.over:
		case !k.pushLocked():
			still = append(still, k)
			continue
		case k.sent != nil:
			sent = append(sent, k)
		}
		k.blocked = false
	}
	clear(c.mu.blocked[len(still):])
	c.mu.blocked = still
	return sent
}

func tell(sent []*Call) {
	for _, k := range sent {
		k.sent(true)
	}
}

// pushLocked queues what it may of the call's answer; it reports whether nothing is left.
func (k *Call) pushLocked() bool {
	c := k.conn
	out := c.outLocked()
	before := len(out.B)
	if !k.opened && k.trailer != trailerFailed {
		k.opened = true
		out.B = appendFrameHeader(out.B, 0, typeHeaders, flagEndHeaders, k.id)
		out.B = c.mu.headers.open(out.B)
		setFrameSize(out.B[before:])
	}
	for k.out != nil {
		rest := k.out.B[k.outAt:]
		n := min(int64(len(rest)), k.window, c.mu.window, int64(c.mu.maxFrame), int64(maxUnsent-c.mu.unsent-(len(out.B)-before)))
		if n <= 0 && len(rest) > 0 {
			break
		}
		if n > 0 {
			out.B = appendFrameHeader(out.B, int(n), typeData, 0, k.id)
			out.B = append(out.B, rest[:n]...)
			k.window -= n
			c.mu.window -= n
			k.outAt += int(n)
		}
		if k.outAt == len(k.out.B) {
			k.out.Free()
			k.out, k.outAt = nil, 0
		}
	}
	if k.out == nil && k.trailer != trailerNone {
		k.trailerLocked(out)
	}
	c.mu.unsent += len(out.B) - before
	return k.out == nil
}

// trailerLocked ends the call on the wire.
func (k *Call) trailerLocked(out *Buffer) {
	c := k.conn
	at := len(out.B)
	out.B = appendFrameHeader(out.B, 0, typeHeaders, flagEndHeaders|flagEndStream, k.id)
	if k.trailer == trailerGood {
		out.B = c.mu.headers.good(out.B)
	} else {
		out.B = c.mu.headers.failed(out.B, !k.opened, k.code, k.text)
	}
	setFrameSize(out.B[at:])
	if !k.ended {
		out.B = appendReset(out.B, k.id, noError) // the rest of the request is not wanted
	}
	k.over = true
	k.uncountLocked()
	c.dropLocked(k)
}
