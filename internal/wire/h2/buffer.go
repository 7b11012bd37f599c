package h2

import (
	"encoding/binary"
	"sync"
)

// Buffer is where the messages of an answer are encoded, each with the prefix that gRPC
// puts before it. It is pooled: who hands it to a call gives it away.
type Buffer struct {
	B []byte
}

var bufferPool = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 1<<10)} }}

// keepBuffer is the largest buffer that goes back to the pool.
const keepBuffer = 256 << 10

// NewBuffer returns an empty buffer.
func NewBuffer() *Buffer { return bufferPool.Get().(*Buffer) }

// Free gives the buffer back; only for one that was not handed to a call.
func (b *Buffer) Free() {
	if cap(b.B) <= keepBuffer {
		b.B = b.B[:0]
		bufferPool.Put(b)
	}
}

// messagePrefix is the length of what gRPC puts before a message: whether it is
// compressed, and its length.
const messagePrefix = 5

// Begin begins a message, which is what is appended to B until End is called with the
// value that Begin returned.
func (b *Buffer) Begin() int {
	at := len(b.B)
	b.B = append(b.B, 0, 0, 0, 0, 0)
	return at
}

// End ends the message that began at.
func (b *Buffer) End(at int) {
	binary.BigEndian.PutUint32(b.B[at+1:], uint32(len(b.B)-at-messagePrefix))
}

// Abandon removes the message that began at.
func (b *Buffer) Abandon(at int) { b.B = b.B[:at] }
