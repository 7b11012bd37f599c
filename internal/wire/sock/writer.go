package sock

import (
	"net"
	"time"
)

// Writer lets whoever has something to send write it at once, where a goroutine to write it
// would cost more than the write: when the connection has been quiet. It belongs to
// whoever writes to the connection at the time.
type Writer struct {
	try  func([]byte) int // nil: not a socket that can be written to without waiting
	last time.Time
}

// Most is the most that Try is good for.
const Most = 16 << 10

// quietFor is how long a connection has not been written to when writing at once pays: when
// answers come faster, one write takes many of them.
const quietFor = 200 * time.Microsecond

// NewWriter returns the writer of a connection.
func NewWriter(c net.Conn) (w Writer) {
	if at, ok := c.(interface{ TryWrite([]byte) int }); ok {
		w.try = at.TryWrite
	} else if tcp := TCP(c); tcp != nil && canTry {
		if raw, err := tcp.SyscallConn(); err == nil {
			w.try = func(b []byte) (n int) {
				_ = raw.Write(func(fd uintptr) bool {
					n = max(0, write(fd, b))
					return true
				})
				return n
			}
		}
	}
	return w
}

// Quiet reports whether Try is worth while. It notes that something is written now.
func (w *Writer) Quiet() bool {
	if w.try == nil {
		return false
	}
	now := time.Now()
	quiet := now.Sub(w.last) > quietFor
	w.last = now
	return quiet
}

// Try writes what the socket takes at once and returns how much that was. What is left,
// and any error, is for a write that may wait.
func (w *Writer) Try(b []byte) (n int) { return w.try(b) }
