package h2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// readLoop reads and handles frames until the connection ends, and says why it ended; or
// until there is nothing to read, where reads do not wait, and says poll.ErrAgain.
func (c *Conn) readLoop() error {
	for {
		n, err := c.nc.Read(c.in.Room(c.need))
		if n > 0 {
			now := time.Now().UnixNano()
			c.in.Filled(n, time.Duration(now-c.lastRead.Swap(now)))
			c.pinged.Store(0)
			if err := c.frames(); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// frames handles all whole frames in the buffer, with answers gathering meanwhile, and
// notes the length of the one that is not whole yet.
func (c *Conn) frames() error {
	corked, err := c.wholeFrames()
	if c.inRound {
		c.inRound = false
		c.server.round.EndRound()
	}
	var fatal connError
	if errors.As(err, &fatal) {
		c.mu.Lock()
		before := len(c.outLocked().B)
		c.mu.out.B = appendGoAway(c.mu.out.B, c.lastID, fatal.code, fatal.text)
		c.mu.unsent += len(c.mu.out.B) - before
		c.mu.Unlock()
		c.uncork()
		c.flush()
	} else if corked {
		c.uncork()
	}
	return err
}

// openRound opens a round, which ends when all frames at hand are handled.
func (c *Conn) openRound() {
	if c.server.round != nil && !c.inRound {
		c.inRound = true
		c.server.round.BeginRound()
	}
}

// wholeFrames handles the frames, and reports whether it has corked the answers.
func (c *Conn) wholeFrames() (corked bool, err error) {
	for {
		b := c.in.Bytes()
		if !c.prefaced {
			if c.need = len(preface); len(b) < c.need {
				return corked, nil
			}
			if string(b[:c.need]) != preface {
				return corked, errors.New("no HTTP/2 preface")
			}
			c.prefaced = true
			c.in.Skip(c.need)
			continue
		}
		if c.need = frameHeader; len(b) < c.need {
			return corked, nil
		}
		f, size := parseFrame(b)
		if size > maxFrame {
			return corked, connError{frameSizeError, fmt.Sprintf("a frame of %d bytes, the most is %d", size, maxFrame)}
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
		c.in.Skip(c.need)
		f.payload = b[frameHeader:c.need:c.need]
		err := c.frame(&f)
		var s streamError
		if errors.As(err, &s) {
			c.resetCall(s)
		} else if err != nil {
			return corked, err
		}
	}
}

// lastWord is how long a peer has to take the reason why its connection ends.
const lastWord = time.Second

// flush waits until all that is queued is written.
func (c *Conn) flush() {
	_ = c.nc.SetWriteDeadline(time.Now().Add(lastWord))
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.unsent > 0 && c.mu.closed == nil {
		c.mu.paused = true
		c.resume.Wait()
	}
}

// frame handles one frame. A panic of a handler ends the connection, not the process: what
// it was in the middle of is not known.
func (c *Conn) frame(f *frame) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.server.log.Error("handler panicked", "remote", c.remote, "panic", p, "stack", string(debug.Stack()))
			err = connError{internalError, "handler panicked"}
		}
	}()
	if c.block.open && (f.kind != typeContinuation || f.stream != c.block.stream) {
		return connError{protocolError, "a header block is not continued"}
	}
	switch f.kind {
	case typeData:
		return c.data(f)
	case typeHeaders:
		return c.headers(f)
	case typeContinuation:
		return c.continuation(f)
	case typeReset:
		return c.reset(f)
	case typeSettings:
		return c.settings(f)
	case typePing:
		return c.ping(f)
	case typeWindowUpdate:
		return c.windowUpdate(f)
	case typePushPromise:
		return connError{protocolError, "a client pushes"}
	case typeGoAway: // the peer makes no new calls; it closes when it likes
		return nil
	default: // PRIORITY, and types that are not known
		return nil
	}
}

func (c *Conn) ping(f *frame) error {
	switch {
	case f.stream != 0:
		return connError{protocolError, "PING of a stream"}
	case len(f.payload) != 8:
		return connError{frameSizeError, "PING without its 8 bytes"}
	case f.has(flagAck):
		return nil // that something came is enough
	}
	c.control(func(b []byte) []byte {
		b = appendFrameHeader(b, 8, typePing, flagAck, 0)
		return append(b, f.payload...)
	})
	return nil
}

// control queues a small frame.
func (c *Conn) control(write func([]byte) []byte) {
	c.mu.Lock()
	out := c.outLocked()
	before := len(out.B)
	out.B = write(out.B)
	c.queuedLocked(len(out.B) - before)
}

func (c *Conn) settings(f *frame) error {
	switch {
	case f.stream != 0:
		return connError{protocolError, "SETTINGS of a stream"}
	case f.has(flagAck):
		return nil
	case len(f.payload)%6 != 0:
		return connError{frameSizeError, "SETTINGS of a broken length"}
	}
	c.mu.Lock()
	window := c.mu.initialWindow
	for b := f.payload; len(b) > 0; b = b[6:] {
		if err := c.settingLocked(binary.BigEndian.Uint16(b), binary.BigEndian.Uint32(b[2:]), &window); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	if err := c.initialWindowLocked(window); err != nil {
		c.mu.Unlock()
		return err
	}
	out := c.outLocked()
	before := len(out.B)
	out.B = appendFrameHeader(out.B, 0, typeSettings, flagAck, 0)
	c.mu.unsent += len(out.B) - before
	c.pushBlocked() // unlocks
	return nil
}

// settingLocked takes one setting over, but for the initial window, of which the last counts.
func (c *Conn) settingLocked(name uint16, value uint32, window *int64) error {
	switch name {
	case settingHeaderTableSize:
		if value < defaultHeaderSize {
			c.mu.headers.tableShrunk()
		}
	case settingInitialWindowSize:
		if value > maxWindow {
			return connError{flowControlError, "an initial window above 2^31-1"}
		}
		*window = int64(value)
	case settingMaxFrameSize:
		if value < maxFrame || value > 1<<24-1 {
			return connError{protocolError, "a frame size that is not allowed"}
		}
		c.mu.maxFrame = int(min(value, largePart))
	}
	return nil
}

// initialWindowLocked changes the windows of all calls, and of those to come.
func (c *Conn) initialWindowLocked(window int64) error {
	change := window - c.mu.initialWindow
	if change == 0 {
		return nil
	}
	c.mu.initialWindow = window
	for _, k := range c.mu.calls {
		if k.window += change; k.window > maxWindow {
			return connError{flowControlError, "a window above 2^31-1"}
		}
	}
	return nil
}

func (c *Conn) windowUpdate(f *frame) error {
	if len(f.payload) != 4 {
		return connError{frameSizeError, "WINDOW_UPDATE without its 4 bytes"}
	}
	n := int64(binary.BigEndian.Uint32(f.payload) & maxWindow)
	switch {
	case n > 0:
	case f.stream == 0:
		return connError{protocolError, "a window update by 0"}
	default:
		return streamError{f.stream, protocolError, "a window update by 0"}
	}
	c.mu.Lock()
	if f.stream == 0 {
		if c.mu.window += n; c.mu.window > maxWindow {
			c.mu.Unlock()
			return connError{flowControlError, "a window above 2^31-1"}
		}
		c.pushBlocked() // unlocks
		return nil
	}
	k := c.mu.calls[f.stream]
	if k == nil {
		c.mu.Unlock()
		if f.stream > c.lastID {
			return connError{protocolError, "WINDOW_UPDATE of a stream that is not open"}
		}
		return nil
	}
	if k.window += n; k.window > maxWindow {
		c.mu.Unlock()
		return streamError{f.stream, flowControlError, "a window above 2^31-1"}
	}
	c.pushCall(k) // unlocks
	return nil
}

// reset ends a call that the peer gave up.
func (c *Conn) reset(f *frame) error {
	switch {
	case len(f.payload) != 4:
		return connError{frameSizeError, "RST_STREAM without its 4 bytes"}
	case f.stream == 0 || f.stream > c.lastID:
		return connError{protocolError, "RST_STREAM of a stream that is not open"}
	}
	if k := c.remove(f.stream); k != nil {
		k.dropped()
	}
	return nil
}

// resetCall ends a call because of what the peer sent for it.
func (c *Conn) resetCall(e streamError) {
	k := c.remove(e.stream)
	c.control(func(b []byte) []byte { return appendReset(b, e.stream, e.code) })
	if k != nil {
		k.dropped()
	}
}

// remove takes a call out before its end; nil when it has ended.
func (c *Conn) remove(id uint32) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.mu.calls[id]
	if k != nil {
		k.gone = true
		c.dropLocked(k)
	}
	return k
}

// data takes in a piece of a request.
func (c *Conn) data(f *frame) error {
	if f.stream == 0 {
		return connError{protocolError, "DATA without a stream"}
	}
	size := len(f.payload)
	if c.granted -= size; c.granted < 0 {
		return connError{flowControlError, "more DATA than the connection's window"}
	}
	if err := f.unpad(); err != nil {
		return err
	}
	// The connection's window is about what is on its way; what a call may hold is bounded
	// by its own.
	if c.taken += size; c.taken >= connWindow/4 {
		n := c.taken
		c.granted, c.taken = c.granted+n, 0
		c.control(func(b []byte) []byte { return appendWindowUpdate(b, 0, n) })
	}
	if f.stream > c.lastID {
		return connError{protocolError, "DATA of a stream that is not open"}
	}
	k, err := c.called(f.stream, size, f.has(flagEndStream))
	if k == nil {
		return err
	}
	return k.data(f.payload, size, f.has(flagEndStream))
}

// called finds the call that a piece of a request is for, nil when it has ended meanwhile,
// and accounts for the piece.
func (c *Conn) called(stream uint32, size int, last bool) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.mu.calls[stream]
	if k == nil {
		return nil, nil
	}
	if k.ended {
		return nil, streamError{stream, streamClosed, "DATA behind the end of a request"}
	}
	if k.granted -= size; k.granted < 0 {
		return nil, streamError{stream, flowControlError, "more DATA than the call's window"}
	}
	k.ended = last
	return k, nil
}

// cork lets answers gather. If too much is unsent it waits first: a peer that does not
// read is not read.
func (c *Conn) cork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.unsent > c.server.limits.Unsent && c.mu.closed == nil {
		c.mu.paused = true
		c.resume.Wait()
	}
	c.mu.paused = false
	c.mu.corked = true
	return c.mu.closed
}

// orderly reports whether a connection that ended with err ended as connections do.
func orderly(err error) bool {
	return err == io.EOF || errors.Is(err, ErrShutdown) || errors.Is(err, ErrClosed)
}
