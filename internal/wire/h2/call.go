package h2

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
)

// Call is one RPC. A direct handler gets it when the request is complete, on the
// connection's reader, and must answer it once, from any goroutine, now or later.
type Call struct {
	conn     *Conn
	id       uint32
	method   *method
	fields   []Field
	store    [12]Field // what fields usually needs
	size     int       // of fields, as HTTP/2 counts
	deadline time.Time // zero: none

	// The reader's alone, until the request is complete.
	in *Buffer

	// Under conn.mu; ended is written by the reader alone, so it may read it without.
	ended    bool // the request is complete
	granted  int  // what the peer may still send
	counted  int  // bytes of in that count as partial
	gone     bool // ended before its answer was complete
	over     bool // ended by its answer
	opened   bool // the answer has begun
	blocked  bool // it is in conn.mu.blocked
	window   int64
	out      *Buffer // what is not framed yet, from outAt
	outAt    int
	trailer  trailer
	code     codes.Code
	text     string
	sent     func(complete bool)
	onCancel func()
	stream   *stream // of a handler that is a goroutine
}

// trailer says how an answer ends, as soon as that is known.
type trailer byte

const (
	trailerNone trailer = iota
	trailerGood
	trailerFailed
)

// Header is the first value of a header of the request, "" without one.
func (k *Call) Header(name string) string {
	for i := range k.fields {
		if k.fields[i].Name == name {
			return k.fields[i].Value
		}
	}
	return ""
}

// RemoteAddr is the peer's address; behind a proxy that says so, the client's own.
func (k *Call) RemoteAddr() netip.AddrPort { return k.conn.remote }

// LocalAddr is our address as the peer reached it.
func (k *Call) LocalAddr() netip.AddrPort { return k.conn.local }

// Deadline is until when the peer waits, false when it did not say.
func (k *Call) Deadline() (time.Time, bool) { return k.deadline, !k.deadline.IsZero() }

// Context ends with the connection. It has no values of the call.
func (k *Call) Context() context.Context { return k.conn.ctx }

// Message is the request. It is valid until the call is answered.
func (k *Call) Message() []byte { return k.in.B[messagePrefix:] }

// OnCancel sets what to do when the peer gives the call up, or its connection ends, before
// it is answered: on the connection's reader, or at once when that has happened.
func (k *Call) OnCancel(f func()) {
	c := k.conn
	c.mu.Lock()
	if !k.gone {
		k.onCancel = f
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	f()
}

// Answer ends the call well, with the messages in b, which may be nil and belongs to the
// call from now on. sent, when not nil, is told once whether all of them went out: false
// when the peer gave up or went away before. It must not block.
func (k *Call) Answer(b *Buffer, sent func(complete bool)) {
	k.finish(b, trailerGood, codes.OK, "", sent)
}

// Fail ends the call with a status and its text, a sentence.
func (k *Call) Fail(code codes.Code, text string) { k.finish(nil, trailerFailed, code, text, nil) }

func (k *Call) finish(b *Buffer, t trailer, code codes.Code, text string, sent func(bool)) {
	k.freeRequest()
	c := k.conn
	c.mu.Lock()
	if k.gone || k.trailer != trailerNone || c.mu.closed != nil {
		c.mu.Unlock()
		if b != nil {
			b.Free()
		}
		if sent != nil {
			sent(false)
		}
		return
	}
	k.trailer, k.code, k.text, k.sent, k.onCancel = t, code, text, sent, nil
	k.addLocked(b)
	complete := k.sendLocked() // unlocks
	if complete && sent != nil {
		sent(true)
	}
}

// addLocked puts b behind what waits already.
func (k *Call) addLocked(b *Buffer) {
	switch {
	case b == nil:
	case k.out == nil:
		k.out = b
	default:
		k.out.B = append(k.out.B, b.B...)
		b.Free()
	}
}

// sendLocked queues what it may, unlocks, and reports whether nothing is left.
func (k *Call) sendLocked() bool {
	c := k.conn
	complete := k.pushLocked()
	if !complete && !k.blocked {
		k.blocked = true
		c.mu.blocked = append(c.mu.blocked, k)
	}
	c.queuedLocked(0)
	return complete
}

// dropped ends a call that was taken out before its answer was complete. It runs on the
// reader.
func (k *Call) dropped() {
	c := k.conn
	c.mu.Lock()
	k.uncountLocked()
	out, onCancel, sent, s := k.out, k.onCancel, k.sent, k.stream
	k.out, k.onCancel, k.sent = nil, nil, nil
	c.mu.Unlock()
	if out != nil {
		out.Free()
	}
	if s != nil {
		s.cancel()
	}
	if onCancel != nil {
		onCancel()
	}
	if sent != nil {
		sent(false)
	}
}

// freeRequest gives the request's memory back; that of a client that streams is the
// reader's.
func (k *Call) freeRequest() {
	if k.method == nil || k.method.streams() {
		return
	}
	if k.in != nil {
		k.in.Free()
		k.in = nil
	}
}

// begin starts what needs no whole request, on the reader.
func (k *Call) begin(path string) error {
	switch {
	case k.method == nil:
		k.Fail(codes.Unimplemented, "unknown method "+path)
	case k.method.streams():
		k.serve()
	case k.ended:
		k.Fail(codes.Internal, "the request has no message")
	}
	return nil
}

// data takes in a piece of the request; size is what it counts in the windows.
func (k *Call) data(b []byte, size int, last bool) error {
	if k.in == nil {
		k.in = NewBuffer()
	}
	k.in.B = append(k.in.B, b...)
	if !last && !k.count(len(b)) {
		k.refuse(codes.ResourceExhausted, "requests of all clients that are not complete fill the memory that is there for them")
		return nil
	}
	if k.method.streams() {
		return k.stream.arrived(size)
	}
	n, ok := messageSize(k.in.B)
	switch {
	case ok && n > k.method.most:
		k.refuse(codes.ResourceExhausted, fmt.Sprintf("the request has %d bytes, the most is %d", n, k.method.most))
	case ok && len(k.in.B) > messagePrefix+n:
		k.refuse(codes.Internal, "the request has more than one message")
	case last && (!ok || len(k.in.B) < messagePrefix+n):
		k.refuse(codes.Internal, "the request ends within a message")
	case last && k.in.B[0] != 0:
		k.refuse(codes.Unimplemented, "the request is compressed; no compression is served")
	case last:
		if k.counted > 0 { // nobody else changes it yet
			k.uncount()
		}
		k.run()
	default:
		k.grant(size)
	}
	return nil
}

// messageSize is the length of the message that b begins with, false when that is not known
// yet.
func messageSize(b []byte) (int, bool) {
	if len(b) < messagePrefix {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(b[1:])), true
}

// refuse fails a call because of what its client has sent of the request.
func (k *Call) refuse(code codes.Code, text string) {
	k.uncount()
	k.Fail(code, text)
	if k.stream != nil {
		k.stream.cancel()
	}
}

// run hands the complete request on.
func (k *Call) run() {
	if k.method.direct != nil {
		k.conn.openRound()
		k.method.direct(k)
		return
	}
	k.serve()
}

// grant lets the peer send n bytes more of the request.
func (k *Call) grant(n int) {
	c := k.conn
	c.mu.Lock()
	if n == 0 || k.ended || k.gone || k.over {
		c.mu.Unlock()
		return
	}
	k.granted += n
	out := c.outLocked()
	before := len(out.B)
	out.B = appendWindowUpdate(out.B, k.id, n)
	c.queuedLocked(len(out.B) - before)
}

// count accounts for n more bytes of a request that is not complete; false when it has no
// room.
func (k *Call) count(n int) bool {
	c := k.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.gone || k.over {
		return true
	}
	k.counted += n
	all := c.server.partial.Add(int64(n))
	return all <= maxPartial || len(k.in.B) <= largePart && all <= 2*maxPartial
}

func (k *Call) uncount() {
	k.conn.mu.Lock()
	k.uncountLocked()
	k.conn.mu.Unlock()
}

func (k *Call) uncountLocked() {
	if k.counted > 0 {
		k.conn.server.partial.Add(int64(-k.counted))
		k.counted = 0
	}
}
