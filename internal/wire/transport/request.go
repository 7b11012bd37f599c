package transport

import (
	"strconv"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Request is a request of the peer, valid until the handler returns.
type Request struct {
	remoting.Command
	Conn *Conn
}

// InRound opens a round, which ends when all frames that the reader has at hand are
// handled. A handler that waits for long must not ask for it.
func (r *Request) InRound() {
	if c := r.Conn; c.owner.round != nil && !c.inRound {
		c.inRound = true
		c.owner.round.BeginRound()
	}
}

// OutOfRound ends the round that an earlier frame has opened: the handler may wait.
func (r *Request) OutOfRound() {
	if c := r.Conn; c.inRound {
		c.inRound = false
		c.owner.round.EndRound()
	}
}

// Responder returns what answers the request, from any goroutine, now or later.
func (r *Request) Responder() Responder {
	return Responder{conn: r.Conn, opaque: r.Opaque, oneway: r.IsOneway()}
}

// Responder answers one request, once. It is a small value; keep it by value. Answers to
// a one-way request, and to a connection that is gone, are dropped.
type Responder struct {
	conn   *Conn
	opaque int32
	oneway bool
}

// Conn returns the connection that the request came on.
func (r Responder) Conn() *Conn { return r.conn }

// Oneway reports whether nobody waits for the answer.
func (r Responder) Oneway() bool { return r.oneway }

// Reply answers. h may be nil; h and body are written before Reply returns.
func (r Responder) Reply(code int32, remark string, h remoting.Header, body []byte) {
	if r.oneway {
		return
	}
	c := r.conn
	if len(body) > maxBody {
		code, remark, h, body = remoting.ResSystemError, tooLong(len(body)), nil, nil
	}
	c.mu.Lock()
	if c.mu.closed != nil {
		c.mu.Unlock()
		return
	}
	out := c.outLocked()
	before := len(out.b)
	out.b = remoting.AppendResponse(out.b, r.opaque, code, remark, h, body)
	c.mu.answered++
	c.queuedLocked(len(out.b) - before) // unlocks
}

// ReplyRecords answers with a body of several pieces that are not copied; release, if not
// nil, is called once when they are no longer needed, possibly before ReplyRecords
// returns. It must not wait.
func (r Responder) ReplyRecords(code int32, remark string, h remoting.Header, bodies [][]byte, release func()) {
	size := 0
	for _, b := range bodies {
		size += len(b)
	}
	if r.oneway || size > maxBody || size <= copyBelow {
		r.replyCopied(code, remark, h, bodies, size)
		if release != nil {
			release()
		}
		return
	}
	c := r.conn
	c.mu.Lock()
	if c.mu.closed != nil {
		c.mu.Unlock()
		if release != nil {
			release()
		}
		return
	}
	out := c.outLocked()
	before := len(out.b)
	out.b = remoting.AppendResponseHead(out.b, r.opaque, code, remark, h, size)
	first := len(c.mu.pieces)
	for _, b := range bodies {
		c.pieceLocked(first, b)
	}
	c.mu.splices = append(c.mu.splices, splice{at: len(out.b), pieces: len(c.mu.pieces), release: release})
	c.mu.answered++
	c.queuedLocked(len(out.b) - before + size) // unlocks
}

func (r Responder) replyCopied(code int32, remark string, h remoting.Header, bodies [][]byte, size int) {
	if r.oneway {
		return
	}
	if size > maxBody {
		r.Reply(remoting.ResSystemError, tooLong(size), nil, nil)
		return
	}
	c := r.conn
	c.mu.Lock()
	if c.mu.closed != nil {
		c.mu.Unlock()
		return
	}
	out := c.outLocked()
	before := len(out.b)
	out.b = remoting.AppendResponseHead(out.b, r.opaque, code, remark, h, size)
	for _, b := range bodies {
		out.b = append(out.b, b...)
	}
	c.mu.answered++
	c.queuedLocked(len(out.b) - before) // unlocks
}

const (
	// maxBody leaves room for the header in the longest frame.
	maxBody = remoting.MaxFrame - 256<<10
	// copyBelow is the size up to which copying a body costs less than a vector write.
	copyBelow = 8 << 10
)

func tooLong(size int) string {
	return "the answer's body of " + strconv.Itoa(size) + " bytes exceeds the limit of " + strconv.Itoa(maxBody) + " bytes"
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
