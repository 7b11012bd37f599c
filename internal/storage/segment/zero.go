package segment

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const zeroChunk = 256 << 10

var zeros [zeroChunk]byte

// ZeroFrom makes everything behind off zero and durable: later files are removed, and in
// the file that holds off what is not zero is overwritten. Holes are skipped where the
// system can name them, so that a sparse file of a gigabyte costs nothing. It returns
// how many bytes of its file, from off to the last byte that was not zero, it cleared.
func (s *Set) ZeroFrom(off int64) (int64, error) {
	if err := s.RemoveFrom(s.Base(off) + 1); err != nil {
		return 0, err
	}
	f := s.find(off)
	if f == nil {
		return 0, nil
	}
	var last int64
	err := f.use(func(h vfs.File) error {
		end, err := zeroTail(h, off-f.Base, s.size)
		if err != nil || end == 0 {
			return err
		}
		last = f.Base + end - off
		return h.SyncData()
	})
	return last, err
}

// Dirty is the position behind the last byte at or after off, in off's file, that is not
// zero; off when there is none.
func (s *Set) Dirty(off int64) (int64, error) {
	f := s.find(off)
	if f == nil {
		return off, nil
	}
	end := off
	err := f.use(func(h vfs.File) error {
		return eachChunk(h, off-f.Base, s.size, func(p []byte, at int64) error {
			if n := lastNonZero(p); n >= 0 {
				end = f.Base + at + int64(n) + 1
			}
			return nil
		})
	})
	return end, err
}

// zeroTail returns the position behind the last byte that it cleared, 0 for none.
func zeroTail(h vfs.File, from, size int64) (end int64, err error) {
	err = eachChunk(h, from, size, func(p []byte, at int64) error {
		last := lastNonZero(p)
		if last < 0 {
			return nil
		}
		end = at + int64(last) + 1
		_, err := h.WriteAt(zeros[:last+1], at)
		return err
	})
	return end, err
}

func eachChunk(h vfs.File, from, size int64, do func(p []byte, at int64) error) error {
	pooled := chunkPool.Get().(*[]byte)
	defer chunkPool.Put(pooled)
	for at := from; at < size; {
		data, hole, ok := nextData(h, at, size)
		if !ok {
			return nil
		}
		for at = max(at, data); at < hole; {
			p := (*pooled)[:min(zeroChunk, hole-at)]
			n, err := h.ReadAt(p, at)
			if n == 0 {
				if err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				return nil
			}
			if err := do(p[:n], at); err != nil {
				return err
			}
			at += int64(n)
		}
	}
	return nil
}

var chunkPool = sync.Pool{New: func() any { b := make([]byte, zeroChunk); return &b }}

func lastNonZero(p []byte) int {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0 {
			return i
		}
	}
	return -1
}

// SyncDir makes the names in a folder durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("%w: folder %s: %w", ErrSync, dir, err)
	}
	return nil
}

// MkdirAll makes dir with its parents and makes the new names durable.
func MkdirAll(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	parent := fs.PathDir(dir)
	if parent != dir && parent != "." && parent != "" {
		if err := MkdirAll(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if parent == "" {
		return nil
	}
	return SyncDir(fs, parent)
}
