package listen

import (
	"bytes"
	"net"
)

// kind is what a connection turns out to be.
type kind int

const (
	undecided kind = iota
	isRemoting
	isHTTP2
	isTLS
	isProxy1
	isProxy2
)

const (
	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	proxy1       = "PROXY "
	proxy2       = "\r\n\r\n\x00\r\nQUIT\n"
	tlsHandshake = 0x16
)

// first says what bytes begin; proxy and plain say whether a PROXY header or a TLS
// handshake may still come. What is nothing else is Remoting, whose reader refuses what
// is no frame.
func first(b []byte, proxy, plain bool) kind {
	if len(b) == 0 {
		return undecided
	}
	if plain && b[0] == tlsHandshake {
		return isTLS
	}
	more := false
	for _, c := range []struct {
		text string
		is   kind
	}{{http2Preface, isHTTP2}, {proxy1, isProxy1}, {proxy2, isProxy2}} {
		switch {
		case c.is != isHTTP2 && !proxy:
		case len(b) >= len(c.text) && string(b[:len(c.text)]) == c.text:
			return c.is
		case len(b) < len(c.text) && c.text[:len(b)] == string(b):
			more = true
		}
	}
	if more {
		return undecided
	}
	return isRemoting
}

// Conn is a connection of which the first bytes were looked at; whoever reads it gets
// them first. Its addresses are those of a PROXY header, if there was one.
type Conn struct {
	net.Conn
	TLS bool // the bytes come out of TLS

	raw           net.Conn
	tcp           *net.TCPConn
	head          []byte // looked at and not yet read
	remote, local net.Addr
}

// maxHead bounds what is looked at: the longest PROXY header.
const maxHead = 4 << 10

// more waits for more bytes to look at.
func (c *Conn) more() error {
	if len(c.head) >= maxHead {
		return errProxy("is longer than 4096 bytes")
	}
	if c.head == nil {
		c.head = make([]byte, 0, 64)
	}
	if cap(c.head)-len(c.head) < 32 {
		c.head = append(make([]byte, 0, maxHead+64), c.head...)
	}
	n, err := c.Conn.Read(c.head[len(c.head):cap(c.head)])
	c.head = c.head[:len(c.head)+n]
	if n > 0 {
		return nil
	}
	return err
}

// Read returns what was looked at, then what comes.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.head)
	if c.head = c.head[n:]; len(c.head) == 0 {
		c.head = nil
	}
	return n, nil
}

// RemoteAddr is the client's address, as far as a proxy in between has told it.
func (c *Conn) RemoteAddr() net.Addr {
	if c.remote != nil {
		return c.remote
	}
	return c.Conn.RemoteAddr()
}

// LocalAddr is the address that the client has connected to.
func (c *Conn) LocalAddr() net.Addr {
	if c.local != nil {
		return c.local
	}
	return c.Conn.LocalAddr()
}

// PeerAddr is the address of whoever made the connection, a proxy or the client.
func (c *Conn) PeerAddr() net.Addr { return c.raw.RemoteAddr() }

// TCP is the connection to write to directly; nil when bytes go through TLS or through
// something that is no TCP connection.
func (c *Conn) TCP() *net.TCPConn { return c.tcp }

// NetConn is the connection below everything.
func (c *Conn) NetConn() net.Conn { return c.raw }

// Head gives away what was looked at and not yet read.
func (c *Conn) Head() []byte {
	head := c.head
	c.head = nil
	return head
}

// take removes n bytes from those that were looked at.
func (c *Conn) take(n int) []byte {
	b := c.head[:n:n]
	c.head = bytes.Clone(c.head[n:])
	return b
}
