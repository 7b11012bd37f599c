package commitlog

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// ErrNoRecord says that no record begins at an offset.
var ErrNoRecord = errors.New("no record at the offset")

const (
	// readGap is how many bytes between two records are rather read than skipped with a
	// second read.
	readGap = 4 << 10
	// readMost is how much one read takes at most, apart from a record that is larger.
	readMost = 512 << 10
)

// Span is a record to read: where it lies, and then its bytes.
type Span struct {
	Offset int64
	Size   int32
	Bytes  []byte
}

// Lease holds the buffers that read records lie in.
type Lease struct {
	ring   *ring
	cache  *blocks
	chunks []*chunk
	blocks []*block
	alone  int // so many of the next records are too sparse to be read by blocks
	bufs   []*[]byte
}

// Release gives the buffers back.
func (l *Lease) Release() {
	for i, c := range l.chunks {
		l.ring.unref(c)
		l.chunks[i] = nil
	}
	for i, b := range l.bufs {
		putBuffer(b)
		l.bufs[i] = nil
	}
	for i, b := range l.blocks {
		l.cache.unref(b)
		l.blocks[i] = nil
	}
	l.chunks, l.blocks, l.bufs = l.chunks[:0], l.blocks[:0], l.bufs[:0]
}

// Read fills in the bytes of spans, which are in log order, from memory where the log's
// end still is and with few reads of the files elsewhere. It stops at the first that
// can't be read and returns how many are filled in. The bytes are valid until the lease
// is released.
func (l *Log[N]) Read(spans []Span, lease *Lease) (int, error) {
	lease.ring, lease.alone = &l.ring, 0
	var c *chunk
	var end int64
	for i := 0; i < len(spans); {
		s := &spans[i]
		if !l.possible(s) {
			return i, ErrNoRecord
		}
		if c == nil || s.Offset < c.base || s.Offset >= end {
			if c, end = l.ring.hold(s.Offset); c != nil {
				lease.chunks = append(lease.chunks, c)
			}
		}
		if c != nil && s.Offset+int64(s.Size) <= end {
			at := s.Offset - c.base
			s.Bytes = c.buf[at : at+int64(s.Size) : at+int64(s.Size)]
			if !matches(s) {
				return i, ErrNoRecord
			}
			i++
			continue
		}
		n, err := l.readRun(spans[i:], lease)
		i += n
		if err != nil {
			return i, err
		}
	}
	return len(spans), nil
}

// readRun reads the first span from the file, and with it those that lie close behind.
func (l *Log[N]) readRun(spans []Span, lease *Lease) (int, error) {
	from := spans[0].Offset
	to := from + int64(spans[0].Size)
	n := 1
	for ; n < len(spans) && l.possible(&spans[n]); n++ {
		next := spans[n].Offset + int64(spans[n].Size)
		if spans[n].Offset < to || spans[n].Offset-to > readGap || next-from > readMost {
			break
		}
		to = next
	}
	if n < len(spans) {
		if dense := l.dense(spans, lease); dense > n {
			if done := l.readBlocks(spans[:dense], lease); done > 0 {
				return done, nil
			}
		}
	}
	lease.alone = max(0, lease.alone-n)
	buf := getBuffer(int(to - from))
	lease.bufs = append(lease.bufs, buf)
	p := (*buf)[:to-from]
	got, err := l.set.ReadAt(p, from)
	if errors.Is(err, segment.ErrNoFile) {
		return 0, ErrNoRecord
	}
	if err != nil {
		return 0, err
	}
	for i := range spans[:n] {
		s := &spans[i]
		at, end := s.Offset-from, s.Offset-from+int64(s.Size)
		if int(end) > got {
			return i, ErrNoRecord
		}
		s.Bytes = p[at:end:end]
		if !matches(s) {
			return i, ErrNoRecord
		}
	}
	return n, nil
}

// possible reports whether a record can have the place and the size that s says: an entry
// of a damaged queue may name any, and no buffer is made for what can't be.
func (l *Log[N]) possible(s *Span) bool {
	return s.Offset >= 0 && s.Size >= message.HeaderSize && int64(s.Size) <= l.opt.Size-s.Offset%l.opt.Size
}

// matches reports whether the bytes say of themselves that they are the record meant.
func matches(s *Span) bool {
	b := s.Bytes
	return len(b) >= message.HeaderSize && int32(binary.BigEndian.Uint32(b)) == s.Size &&
		int64(binary.BigEndian.Uint64(b[28:])) == s.Offset
}

// Trim lets go of what is in memory for readers and was not read since the Trim before.
func (l *Log[N]) Trim() { l.blocks.trim() }

// ReadAt gives a copy of the record at off.
func (l *Log[N]) ReadAt(off int64) ([]byte, error) {
	var head [message.HeaderSize]byte
	h, err := l.Head(off, head[:])
	if err != nil {
		return nil, err
	}
	span := []Span{{Offset: off, Size: h.Size}}
	var lease Lease
	defer lease.Release()
	if _, err := l.Read(span, &lease); err != nil {
		return nil, err
	}
	return append([]byte(nil), span[0].Bytes...), nil
}

// Head reads the head of the record at off; buf has room for message.HeaderSize bytes.
func (l *Log[N]) Head(off int64, buf []byte) (message.Header, error) {
	if off < 0 {
		return message.Header{}, ErrNoRecord
	}
	buf = buf[:message.HeaderSize]
	if c, end := l.ring.hold(off); c != nil && off+int64(len(buf)) <= end {
		copy(buf, c.buf[off-c.base:])
		l.ring.unref(c)
	} else {
		if c != nil {
			l.ring.unref(c)
		}
		n, err := l.set.ReadAt(buf, off)
		if errors.Is(err, segment.ErrNoFile) {
			err = ErrNoRecord
		}
		if err != nil {
			return message.Header{}, err
		}
		buf = buf[:n]
	}
	h, ok := message.PeekHeader(buf)
	if !ok || h.Magic == message.MagicBlank || h.PhysicalOffset != off {
		return h, ErrNoRecord
	}
	return h, nil
}

// Buffers come in powers of two from 4 KiB to 8 MiB.
const (
	smallestBuffer = 12
	buffers        = 12
)

var bufferPools [buffers]sync.Pool

func bufferClass(n int) int {
	return max(bits.Len(uint(n-1)), smallestBuffer) - smallestBuffer
}

func getBuffer(n int) *[]byte {
	class := bufferClass(n)
	if class >= buffers {
		b := make([]byte, n)
		return &b
	}
	if b, ok := bufferPools[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 1<<(class+smallestBuffer))
	return &b
}

func putBuffer(b *[]byte) {
	if class := bufferClass(len(*b)); class < buffers && len(*b) == 1<<(class+smallestBuffer) {
		bufferPools[class].Put(b)
	}
}
