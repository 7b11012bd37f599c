package commitlog

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// scanChunk is how much Scan reads at a time.
const scanChunk = 4 << 20

// Scan reads records from off on, which is the start of a record or of a file, and calls
// each with their bytes, valid until it returns, in order. It ends at the first place
// where no sound record is, at to, or with each's error, and returns where it ended.
// verify checks the checksums; without it the layout alone is checked.
func (l *Log[N]) Scan(off, to int64, verify bool, each func(record []byte, m *message.Message) error) (int64, error) {
	r := window{set: l.set}
	var m message.Message
	for off < to {
		left := l.opt.Size - off%l.opt.Size
		if left < message.BlankSize {
			off += left
			continue
		}
		b, err := r.at(off, message.BlankSize)
		if err != nil {
			return off, err
		}
		h, ok := message.PeekHeader(b)
		if ok && h.Magic == message.MagicBlank {
			if !l.set.Has(off + left) {
				return off, nil // the file behind it was not made yet: nothing follows
			}
			off += left
			continue
		}
		if h.Size < message.HeaderSize || int64(h.Size) > left {
			return off, nil
		}
		if b, err = r.at(off, int(h.Size)); err != nil {
			return off, err
		}
		if _, err := message.DecodeStored(b, &m); err != nil || m.PhysicalOffset != off {
			return off, nil
		}
		if verify {
			if err := message.CheckCRC(b); err != nil {
				return off, nil
			}
		}
		if err := each(b[:h.Size], &m); err != nil {
			return off, err
		}
		off += int64(h.Size)
	}
	return off, nil
}

// Resync finds the next record behind off, which is in the middle of damage: a place
// whose bytes say that they are the record of that offset. It returns to when there is
// none.
func (l *Log[N]) Resync(off, to int64) (int64, error) {
	r := window{set: l.set}
	for off++; off < to; off++ {
		b, err := r.at(off, message.HeaderSize)
		if err != nil {
			return off, err
		}
		if h, ok := message.PeekHeader(b); ok && h.Magic != message.MagicBlank && h.PhysicalOffset == off {
			return off, nil
		}
	}
	return to, nil
}

// window is a buffer over the file around the place that is being scanned.
type window struct {
	set interface {
		ReadAt(p []byte, off int64) (int, error)
		Base(off int64) int64
		FileSize() int64
	}
	base int64
	buf  []byte
	n    int
}

// at gives at least n bytes from off on, fewer where the file ends.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off >= w.base && off+int64(n) <= w.base+int64(w.n) {
		return w.buf[off-w.base : w.n], nil
	}
	fileEnd := w.set.Base(off) + w.set.FileSize()
	want := int(min(int64(max(n, scanChunk)), fileEnd-off))
	if len(w.buf) < want {
		w.buf = make([]byte, want)
	}
	got, err := w.set.ReadAt(w.buf[:want], off)
	if err != nil && !errors.Is(err, segment.ErrNoFile) {
		return nil, fmt.Errorf("reading the log at %d: %w", off, err)
	}
	w.base, w.n = off, got
	return w.buf[:got], nil
}

// Cut makes end the end of the log's files: what lies behind it is zeroed, later files
// are removed, and that is durable. It returns how many written bytes were cut.
func (l *Log[N]) Cut(end int64) (int64, error) {
	return l.set.ZeroFrom(end)
}
