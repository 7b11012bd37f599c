// Package sock is what both transports do with sockets: accept and keep them, read into a buffer,
// write without waiting, cut them.
//
// Invariants: a read buffer starts small, because most connections are idle most of the
// time, and grows when reads fill it or a frame needs it: as the bytes come, not as a
// length field claims; one beyond the usual is lent by a pool for the time that its frame
// takes. A Writer and Cut never wait for the peer. Accepting outlives a lack of
// descriptors.
//
// Neighbours: wire/transport and wire/h2; front/grpcv2 for addresses.
package sock

import (
	"math/bits"
	"sync"
	"time"
)

const (
	firstRead = 2 << 10
	fullRead  = 64 << 10
	// quiet is how long a connection has said nothing when its buffer goes back to small.
	quiet = 5 * time.Second
)

// Buffer holds what was read and not yet handled. The zero value is ready. It belongs to
// one goroutine.
type Buffer struct {
	b    []byte
	r, w int
}

// Bytes is what was read and not yet handled; valid until Room is called.
func (f *Buffer) Bytes() []byte { return f.b[f.r:f.w] }

// Len is how much of it there is.
func (f *Buffer) Len() int { return f.w - f.r }

// Skip says that n bytes are handled.
func (f *Buffer) Skip(n int) { f.r += n }

// Lent reports whether the buffer is empty and still holds memory that Room will give
// back: what aliases it must not be kept over that.
func (f *Buffer) Lent() bool { return f.r == f.w && len(f.b) > fullRead }

// Room makes space for the next read, need being the length of the frame that is
// incomplete, 0 if unknown.
func (f *Buffer) Room(need int) []byte {
	if f.r == f.w {
		f.r, f.w = 0, 0
		if len(f.b) > fullRead {
			putLarge(f.b)
			f.b = make([]byte, fullRead)
		}
	}
	switch {
	case f.b == nil:
		f.b = make([]byte, firstRead)
	case f.w < len(f.b) && need <= len(f.b)-f.r:
		// the frame fits where it is
	case f.r > 0 && need <= len(f.b):
		f.w = copy(f.b, f.b[f.r:f.w])
		f.r = 0
	default:
		f.resize(min(2*len(f.b), max(need, fullRead)))
	}
	return f.b[f.w:]
}

func (f *Buffer) resize(size int) {
	size = max(size, f.w-f.r+1)
	var b []byte
	if size > fullRead {
		b = getLarge(size)
	} else {
		b = make([]byte, size)
	}
	f.w = copy(b, f.b[f.r:f.w])
	if len(f.b) > fullRead {
		putLarge(f.b)
	}
	f.b, f.r = b, 0
}

// Filled notes a read of n bytes, which came after a pause, and lets the buffer follow
// what is usual.
func (f *Buffer) Filled(n int, pause time.Duration) {
	f.w += n
	switch {
	case f.w == len(f.b) && len(f.b) < fullRead:
		f.resize(2 * len(f.b))
	case pause > quiet && f.r == 0 && f.w < firstRead && len(f.b) > firstRead:
		f.resize(firstRead)
	}
}

// larges are the buffers above fullRead, by powers of two.
var larges [12]sync.Pool

func largeClass(size int) int { return bits.Len(uint((size - 1) / fullRead)) }

func getLarge(size int) []byte {
	class := largeClass(size)
	if p, _ := larges[class].Get().(*[]byte); p != nil {
		return *p
	}
	return make([]byte, fullRead<<class)
}

func putLarge(b []byte) { larges[largeClass(len(b))].Put(&b) }
