package h2

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Field is one header of a request.
type Field struct{ Name, Value string }

// headerBlock is the header block that is being read.
type headerBlock struct {
	decoder *hpack.Decoder
	most    int

	open   bool // no END_HEADERS yet
	stream uint32
	last   bool // END_STREAM
	bytes  int  // on the wire
	size   int  // as HTTP/2 counts: 32 more for each field
	fields []Field
}

func (h *headerBlock) emit(f hpack.HeaderField) {
	if h.size += len(f.Name) + len(f.Value) + 32; h.size <= h.most {
		h.fields = append(h.fields, Field{f.Name, f.Value})
	}
}

func (h *headerBlock) reset() {
	clear(h.fields)
	h.fields, h.size, h.bytes, h.open = h.fields[:0], 0, 0, false
	if cap(h.fields) > 256 {
		h.fields = nil
	}
}

func (c *Conn) headers(f *frame) error {
	if f.stream == 0 || f.stream%2 == 0 {
		return connError{protocolError, "HEADERS of a stream that no client opens"}
	}
	if err := f.unpad(); err != nil {
		return err
	}
	c.block.reset()
	c.block.stream, c.block.last = f.stream, f.has(flagEndStream)
	return c.fragment(f)
}

func (c *Conn) continuation(f *frame) error {
	if !c.block.open {
		return connError{protocolError, "CONTINUATION of nothing"}
	}
	return c.fragment(f)
}

// fragment decodes a part of a header block. All of it must be decoded, also what is not
// kept, since it changes the table.
func (c *Conn) fragment(f *frame) error {
	if c.block.bytes += len(f.payload) + 32; c.block.bytes > 2*c.block.most {
		return connError{enhanceYourCalm, "a header block without end"}
	}
	if _, err := c.block.decoder.Write(f.payload); err != nil {
		return connError{compressionError, err.Error()}
	}
	if c.block.open = !f.has(flagEndHeaders); c.block.open {
		return nil
	}
	if err := c.block.decoder.Close(); err != nil {
		return connError{compressionError, err.Error()}
	}
	return c.headersRead()
}

// headersRead begins a call, or ends the request of one.
func (c *Conn) headersRead() error {
	b := &c.block
	if b.stream <= c.lastID {
		if !b.last {
			return streamError{b.stream, protocolError, "trailers without an end"}
		}
		k, err := c.called(b.stream, 0, true)
		if k == nil {
			return err
		}
		return k.data(nil, 0, true)
	}
	c.lastID = b.stream
	if b.size > b.most {
		return c.refuseHTTP(431)
	}
	k := &Call{conn: c, id: b.stream, size: b.size, granted: streamWindow, ended: b.last}
	path, status, err := k.readHeaders(b.fields)
	switch {
	case err != nil:
		return err
	case status != 0:
		return c.refuseHTTP(status)
	}
	k.method = c.server.methods[path]
	c.mu.Lock()
	added := c.addLocked(k)
	c.mu.Unlock()
	if !added {
		return streamError{b.stream, refusedStream, "no more calls"}
	}
	return k.begin(path)
}

// refuseHTTP answers what is no gRPC call.
func (c *Conn) refuseHTTP(status int) error {
	id, last := c.block.stream, c.block.last
	c.mu.Lock()
	out := c.outLocked()
	before := len(out.B)
	at := len(out.B)
	out.B = appendFrameHeader(out.B, 0, typeHeaders, flagEndHeaders|flagEndStream, id)
	out.B = c.mu.headers.httpStatus(out.B, status)
	setFrameSize(out.B[at:])
	if !last {
		out.B = appendReset(out.B, id, noError)
	}
	c.queuedLocked(len(out.B) - before)
	return nil
}

func setFrameSize(b []byte) {
	n := len(b) - frameHeader
	b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n)
}

// readHeaders checks and keeps the headers of a call; status, when not 0, is the HTTP
// status of an answer to what is no gRPC call.
func (k *Call) readHeaders(fields []Field) (path string, status int, err error) {
	var method, kind string
	malformed := func(text string) (string, int, error) {
		return "", 0, streamError{k.conn.block.stream, protocolError, text}
	}
	k.fields = k.store[:0]
	regular := false
	for _, f := range fields {
		if strings.HasPrefix(f.Name, ":") {
			switch {
			case regular:
				return malformed("a pseudo header behind a header")
			case f.Name == ":method":
				method = f.Value
			case f.Name == ":path":
				path = f.Value
			case f.Name != ":scheme" && f.Name != ":authority" && f.Name != ":protocol":
				return malformed("an unknown pseudo header")
			}
			continue
		}
		regular = true
		if f.Name == "" || strings.ToLower(f.Name) != f.Name || f.Name == "connection" {
			return malformed("a header that is not allowed")
		}
		switch f.Name {
		case "content-type":
			kind = f.Value
		case "grpc-timeout":
			d, ok := parseTimeout(f.Value)
			if !ok {
				return "", 400, nil
			}
			k.deadline = time.Now().Add(d)
		}
		k.fields = append(k.fields, f)
	}
	switch {
	case method == "" || path == "":
		return malformed("no method or path")
	case method != "POST":
		return "", 405, nil
	case !isGRPC(kind):
		return "", 415, nil
	}
	return path, 0, nil
}

func isGRPC(kind string) bool {
	rest, ok := strings.CutPrefix(kind, contentType)
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// parseTimeout reads a grpc-timeout: up to eight digits and a unit.
func parseTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit := slices.Index([]byte("HMSmun"), s[len(s)-1])
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 64)
	if unit < 0 || err != nil {
		return 0, false
	}
	each := [...]time.Duration{time.Hour, time.Minute, time.Second, time.Millisecond, time.Microsecond, 1}[unit]
	if n > uint64((1<<63-1)/each) {
		return 1<<63 - 1, true
	}
	return time.Duration(n) * each, true
}
