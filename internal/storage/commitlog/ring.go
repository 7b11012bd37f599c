package commitlog

import (
	"sort"
	"sync"
	"sync/atomic"
)

// maxFreeChunks is how many buffers are kept for reuse; more are left to the collector.
const maxFreeChunks = 4

// chunk is one buffer of log bytes that lie side by side in one file. The bytes up to n
// never change once written; n is guarded by the log's mutex. refs counts the ring,
// the writer and the readers; at zero the buffer is used again.
type chunk struct {
	base int64
	n    int
	buf  []byte
	refs atomic.Int32
}

// ring is the newest chunks: those not yet written or dispatched, and behind them some
// for readers at the end of the log.
type ring struct {
	chunkSize int
	start     int64 // nothing before this is here

	mu     sync.RWMutex
	chunks []*chunk // by base
	free   []*chunk
}

// add makes a chunk at base with room for size bytes. The caller holds the log's mutex.
func (r *ring) add(base int64, size int) *chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c *chunk
	if n := len(r.free); n > 0 && size <= r.chunkSize {
		c = r.free[n-1]
		r.free[n-1] = nil
		r.free = r.free[:n-1]
	} else {
		c = &chunk{buf: make([]byte, max(size, r.chunkSize))}
	}
	c.base, c.n = base, 0
	c.refs.Store(2)
	r.chunks = append(r.chunks, c)
	return c
}

// trim lets go of the chunks that end before off, but not of the last one.
func (r *ring) trim(off int64) {
	r.mu.RLock()
	idle := len(r.chunks) < 2 || r.chunks[1].base > off
	r.mu.RUnlock()
	if idle {
		return
	}
	r.mu.Lock()
	n := 0
	for n+1 < len(r.chunks) && r.chunks[n+1].base <= off {
		n++
	}
	gone := append([]*chunk(nil), r.chunks[:n]...)
	rest := copy(r.chunks, r.chunks[n:])
	clear(r.chunks[rest:])
	r.chunks = r.chunks[:rest]
	r.mu.Unlock()
	for _, c := range gone {
		r.unref(c)
	}
}

// rewind drops everything at or after off, which nobody reads yet.
func (r *ring) rewind(off int64) {
	r.mu.Lock()
	n := len(r.chunks)
	for n > 0 && r.chunks[n-1].base >= off {
		n--
		r.chunks[n] = nil
	}
	r.chunks = r.chunks[:n]
	if n > 0 {
		if c := r.chunks[n-1]; off < c.base+int64(c.n) {
			c.n = int(off - c.base)
		}
	}
	r.mu.Unlock()
}

func (r *ring) unref(c *chunk) {
	if c.refs.Add(-1) != 0 {
		return
	}
	r.mu.Lock()
	if len(r.free) < maxFreeChunks && len(c.buf) == r.chunkSize {
		r.free = append(r.free, c)
	}
	r.mu.Unlock()
}

// hold gives the chunk with the byte at off and the offset up to which the chunk may be
// read; the caller unrefs it. nil when it is not here.
func (r *ring) hold(off int64) (c *chunk, end int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.chunks) == 0 || off < r.chunks[0].base {
		return nil, 0
	}
	i := sort.Search(len(r.chunks), func(i int) bool { return r.chunks[i].base > off }) - 1
	c = r.chunks[i]
	end = c.base + int64(len(c.buf))
	if i+1 < len(r.chunks) {
		end = min(end, r.chunks[i+1].base)
	}
	if off >= end {
		return nil, 0
	}
	c.refs.Add(1)
	return c, end
}
