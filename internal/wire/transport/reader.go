package transport

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// readLoop reads and handles frames until the connection ends, and says why it ended; or
// until there is nothing to read, where reads do not wait, and says poll.ErrAgain.
func (c *Conn) readLoop() error {
	for {
		if c.buf.Lent() {
			// Room gives the buffer back; the request would keep it for as long as the
			// connection is quiet.
			c.request.Forget()
		}
		n, err := c.nc.Read(c.buf.Room(c.need))
		if n > 0 {
			now := time.Now().UnixNano()
			c.buf.Filled(n, time.Duration(now-c.lastActive.Load()))
			c.lastActive.Store(now)
			if err := c.frames(); err != nil {
				return err
			}
		}
		if err != nil {
			if err == io.EOF && c.buf.Len() > 0 {
				return fmt.Errorf("%w: it ended within a frame", remoting.ErrFrame)
			}
			return err
		}
	}
}

// frames handles all whole frames in the buffer, with answers gathering meanwhile, and
// notes the length of the one that is not whole yet. When the answers have become too many
// the other frames wait until the peer has taken some.
func (c *Conn) frames() error {
	for {
		corked, err := c.wholeFrames()
		if !corked {
			return err
		}
		if c.inRound {
			c.inRound = false
			c.owner.round.EndRound()
		}
		if err != nil {
			return err
		}
		c.uncork()
		if !c.ample.Load() {
			return nil
		}
	}
}

// wholeFrames handles the frames, as long as not too much is unsent, and reports whether it has
// corked the answers.
func (c *Conn) wholeFrames() (corked bool, err error) {
	for !corked || !c.ample.Load() {
		b := c.buf.Bytes()
		if c.need = remoting.LengthSize; len(b) < c.need {
			return corked, nil
		}
		size, err := remoting.FrameSize(b)
		if err != nil {
			return corked, err
		}
		if c.need += size; len(b) < c.need {
			return corked, nil
		}
		if !corked {
			if err := c.cork(); err != nil {
				return false, err
			}
			corked = true
		}
		c.buf.Skip(c.need)
		if err := c.frame(b[remoting.LengthSize:c.need]); err != nil {
			return corked, err
		}
	}
	return corked, nil
}

// cork lets answers gather. If too much is unsent it waits first: a peer that does not
// read is not read.
func (c *Conn) cork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.unsent > c.owner.limits.UnsentPause && c.mu.closed == nil {
		c.mu.paused = true
		c.resume.Wait()
	}
	c.mu.paused = false
	c.ample.Store(false)
	c.mu.corked = true
	return c.mu.closed
}

// inlineWrite is how much the reader writes itself: what a socket takes at once.
const inlineWrite = 64 << 10

// uncork writes what has gathered: itself when it is little, else by a writer. A client
// never writes on its reader: if both ends did, each could wait for the other to read.
func (c *Conn) uncork() {
	c.mu.Lock()
	c.mu.corked = false
	c.mu.received = c.seen
	if c.mu.unsent == 0 || c.mu.writing || c.mu.closed != nil {
		drained := c.drainedLocked()
		c.mu.Unlock()
		if drained {
			c.closeWith(ErrShutdown)
		}
		return
	}
	c.mu.writing = true
	inline := c.owner.server && c.mu.unsent <= inlineWrite
	c.mu.Unlock()
	if !inline || c.writeOnce() {
		c.owner.conns.Running.Add(1)
		go c.drain()
	}
}

// frame handles one frame. A panic of the handler ends this connection, not the process:
// what it was in the middle of is not known, so nothing more is read from this peer.
func (c *Conn) frame(frame []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.owner.log.Error("handler panicked", "code", c.request.Code, "remote", c.remote, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	r := &c.request
	if err := r.Parse(frame); err != nil {
		return err
	}
	if r.IsResponse() {
		c.answer(&r.Command)
		return nil
	}
	if !r.IsOneway() {
		c.seen++
		if c.draining.Load() {
			c.goAway()
			return nil
		}
	}
	c.owner.handler(r)
	return nil
}

// goAway refuses a request that came after shutdown began, with the code that makes its
// client go elsewhere: newer Java clients know GO_AWAY, the others retry on 14.
func (c *Conn) goAway() {
	code := remoting.ResServiceNotAvailable
	if c.request.Language == remoting.LanguageJava && c.request.Version > remoting.Version5_3_1 {
		code = remoting.ResGoAway
	}
	c.request.Responder().Reply(code, "the server is shutting down", nil, nil)
}
