// Package segment is a sequence of fixed-size files, each named by the offset of its
// first byte: the only code that knows their file names.
//
// Invariants: a file is extended to its full size by a write at its last byte when it is
// made, and from then on only overwritten or removed, never cut; a Pool holds no more
// files open than it was told to, apart from those in use at the moment; a removed file
// is never opened again. Neighbours: commitlog, consumequeue and keyindex.
package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNoFile says that no file of the set holds an offset.
var ErrNoFile = errors.New("no file for the offset")

// ErrSync wraps the error of a failed sync: what the disk holds is not known after it,
// and a second sync that succeeds proves nothing.
var ErrSync = errors.New("sync failed")

// Name is the file name for a first byte at offset: 20 digits.
func Name(offset int64) string { return fmt.Sprintf("%020d", offset) }

// ParseName is the inverse of Name.
func ParseName(name string) (int64, bool) {
	if len(name) != 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n >= 0 && Name(n) == name
}

// Set is the files of one folder, in order and without gaps. Readers and writers may use
// it together; Create and the Remove methods need one caller at a time.
type Set struct {
	pool  *Pool
	dir   string
	size  int64
	files atomic.Pointer[[]*File]
}

// NewSet is an empty set whose folder need not exist yet.
func NewSet(pool *Pool, dir string, size int64) *Set {
	return &Set{pool: pool, dir: dir, size: size}
}

// OpenSet lists the folder. A missing folder is an empty set. Files with other names are
// left alone.
func OpenSet(pool *Pool, dir string, size int64) (*Set, error) {
	s := NewSet(pool, dir, size)
	names, err := pool.fs.List(dir)
	if oserror.IsNotExist(err) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	var files []*File
	for _, name := range names {
		if base, ok := ParseName(name); ok {
			files = append(files, &File{set: s, Base: base})
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Base < files[j].Base })
	s.publish(files)
	return s, nil
}

func (s *Set) publish(files []*File) {
	if len(files) == 0 {
		s.files.Store(nil)
		return
	}
	s.files.Store(&files)
}

// Files is the current list, oldest first; it is never changed in place.
func (s *Set) Files() []*File {
	if p := s.files.Load(); p != nil {
		return *p
	}
	return nil
}

// Dir is the folder.
func (s *Set) Dir() string { return s.dir }

// FileSize is the size of every file.
func (s *Set) FileSize() int64 { return s.size }

// Base is the first offset of the file that would hold off.
func (s *Set) Base(off int64) int64 { return off - off%s.size }

func (s *Set) find(off int64) *File {
	files := s.Files()
	if len(files) == 0 || off < files[0].Base {
		return nil
	}
	// Without gaps the position follows from the offset; with one, search.
	if i := int((off - files[0].Base) / s.size); i < len(files) && files[i].Base == s.Base(off) {
		return files[i]
	}
	i := sort.Search(len(files), func(i int) bool { return files[i].Base > off }) - 1
	if off-files[i].Base < s.size {
		return files[i]
	}
	return nil
}

// Has reports whether a file holds off.
func (s *Set) Has(off int64) bool { return s.find(off) != nil }

// Create makes the file that starts at base in its full size; durable makes sure that it
// is there after a power cut. A file that exists already is taken as it is.
func (s *Set) Create(base int64, durable bool) error {
	if s.find(base) != nil {
		return nil
	}
	mkdir, sync, syncDir := s.pool.fs.MkdirAll, vfs.File.Sync, SyncDir
	if durable {
		mkdir = func(dir string, _ os.FileMode) error { return MkdirAll(s.pool.fs, dir) }
	} else {
		sync = func(vfs.File) error { return nil }
		syncDir = func(vfs.FS, string) error { return nil }
	}
	if err := mkdir(s.dir, 0o755); err != nil {
		return err
	}
	f := &File{set: s, Base: base}
	err := f.use(func(h vfs.File) error {
		if err := extend(h, s.size); err != nil {
			return err
		}
		return sync(h)
	})
	if err == nil {
		err = syncDir(s.pool.fs, s.dir)
	}
	if err != nil {
		s.pool.forget(f)
		return fmt.Errorf("creating %s: %w", f.path(), err)
	}
	old := s.Files()
	files := make([]*File, 0, len(old)+1)
	files = append(files, old...)
	files = append(files, f)
	sort.Slice(files, func(i, j int) bool { return files[i].Base < files[j].Base })
	s.publish(files)
	return nil
}

func extend(h vfs.File, size int64) error {
	info, err := h.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	_, err = h.WriteAt([]byte{0}, size-1)
	return err
}

// ReadAt fills p from offset off. It stops early, without an error, at the end of the
// last file; it fails with ErrNoFile when there is no file at all for off.
func (s *Set) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		f := s.find(off + int64(n))
		if f == nil {
			if n > 0 {
				return n, nil
			}
			return 0, ErrNoFile
		}
		at := off + int64(n) - f.Base
		want := min(len(p)-n, int(s.size-at))
		got, err := f.ReadAt(p[n:n+want], at)
		n += got
		if err != nil {
			return n, err
		}
		if got < want {
			return n, nil // a short last file
		}
	}
	return n, nil
}

// WriteAt writes p, which must not cross a file's end, into an existing file.
func (s *Set) WriteAt(p []byte, off int64) error {
	f := s.find(off)
	if f == nil {
		return ErrNoFile
	}
	if off-f.Base+int64(len(p)) > s.size {
		return fmt.Errorf("write of %d bytes at %d crosses the end of %s", len(p), off, f.path())
	}
	return f.use(func(h vfs.File) error {
		_, err := h.WriteAt(p, off-f.Base)
		return err
	})
}

// Preallocate asks for disk space for n bytes of one file from off on, where the system
// can; nothing depends on it.
func (s *Set) Preallocate(off, n int64) {
	if f := s.find(off); f != nil {
		_ = f.use(func(h vfs.File) error { return h.Preallocate(off-f.Base, n) })
	}
}

// Sync makes the bytes of [from, to) durable.
func (s *Set) Sync(from, to int64) error {
	for _, f := range s.Files() {
		if f.Base+s.size <= from || f.Base >= to {
			continue
		}
		if err := f.use(func(h vfs.File) error { return h.SyncData() }); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSync, f.path(), err)
		}
	}
	return nil
}

// Grow extends the last file to its full size where another server or a crash left it
// shorter.
func (s *Set) Grow() error {
	files := s.Files()
	if len(files) == 0 {
		return nil
	}
	return files[len(files)-1].use(func(h vfs.File) error {
		info, err := h.Stat()
		if err != nil || info.Size() == s.size {
			return err
		}
		if err := extend(h, s.size); err != nil {
			return err
		}
		return h.Sync()
	})
}

// RemoveBefore removes the files that end at or before off, but never the last one, and
// returns how many went.
func (s *Set) RemoveBefore(off int64, limit int) (int, error) {
	removed := 0
	for removed < limit {
		files := s.Files()
		if len(files) < 2 || files[0].Base+s.size > off {
			break
		}
		if err := s.remove(files[0]); err != nil {
			return removed, err
		}
		removed++
	}
	if removed > 0 {
		return removed, SyncDir(s.pool.fs, s.dir)
	}
	return 0, nil
}

// RemoveFrom removes the files that start at or after off.
func (s *Set) RemoveFrom(off int64) error {
	removed := false
	for {
		files := s.Files()
		if len(files) == 0 || files[len(files)-1].Base < off {
			break
		}
		if err := s.remove(files[len(files)-1]); err != nil {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return SyncDir(s.pool.fs, s.dir)
}

func (s *Set) remove(f *File) error {
	// First out of sight, then closed, then removed: no reader meets half of it, and some
	// systems do not remove what is open.
	old := s.Files()
	files := make([]*File, 0, len(old))
	for _, o := range old {
		if o != f {
			files = append(files, o)
		}
	}
	s.publish(files)
	s.pool.forget(f)
	if err := s.pool.fs.Remove(f.path()); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}

// Close closes the open files of the set, which must not be in use.
func (s *Set) Close() {
	for _, f := range s.Files() {
		s.pool.close(f)
	}
}

// Forget drops the set's files from the pool and the list; the files themselves stay or
// have been removed with their folder.
func (s *Set) Forget() {
	for _, f := range s.Files() {
		s.pool.forget(f)
	}
	s.publish(nil)
}

// File is one file of a set.
type File struct {
	Base int64 // offset of the first byte
	set  *Set
	name string // other than the one for Base

	// Guarded by the pool's mutex.
	handle     vfs.File
	users      int
	gone       bool
	newer, old *File
}

func (f *File) path() string {
	name := f.name
	if name == "" {
		name = Name(f.Base)
	}
	return f.set.pool.fs.PathJoin(f.set.dir, name)
}

// NewFile is a file of a fixed size with a name of its own, opened through the pool when
// it is used.
func NewFile(pool *Pool, dir, name string, size int64) *File {
	return &File{set: NewSet(pool, dir, size), name: name}
}

// Create makes a file of NewFile in its full size, with its folder, without syncing. One
// that exists is extended.
func (f *File) Create() error {
	if err := f.set.pool.fs.MkdirAll(f.set.dir, 0o755); err != nil {
		return err
	}
	return f.use(func(h vfs.File) error { return extend(h, f.set.size) })
}

// WriteAt writes at a position of the file.
func (f *File) WriteAt(p []byte, at int64) error {
	return f.use(func(h vfs.File) error {
		_, err := h.WriteAt(p, at)
		return err
	})
}

// Sync makes the file durable.
func (f *File) Sync() error {
	if err := f.use(vfs.File.SyncData); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrSync, f.path(), err)
	}
	return nil
}

// Remove removes a file of NewFile.
func (f *File) Remove() error {
	f.set.pool.forget(f)
	if err := f.set.pool.fs.Remove(f.path()); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}

// Close closes the file until it is used again.
func (f *File) Close() { f.set.pool.close(f) }

// Path is the file's path.
func (f *File) Path() string { return f.path() }

// Size is the size the file has on disk.
func (f *File) Size() (n int64, err error) {
	info, err := f.set.pool.fs.Stat(f.path())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ReadAt reads at a position of the file; a short read at the file's end is no error.
func (f *File) ReadAt(p []byte, at int64) (int, error) {
	h, err := f.set.pool.acquire(f)
	if err != nil {
		return 0, err
	}
	n, err := h.ReadAt(p, at)
	f.set.pool.release(f)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *File) use(do func(vfs.File) error) error {
	h, err := f.set.pool.acquire(f)
	if err != nil {
		return err
	}
	defer f.set.pool.release(f)
	return do(h)
}

// Pool bounds how many files are open at a time; the one used longest ago is closed
// first. Files of many sets share it.
type Pool struct {
	fs  vfs.FS
	max int
	mu  struct {
		sync.Mutex
		open           int
		newest, oldest *File // open files that nobody uses
	}
}

// NewPool keeps up to max files of fs open.
func NewPool(fs vfs.FS, max int) *Pool { return &Pool{fs: fs, max: max} }

// FS is the file system of the pool's files.
func (p *Pool) FS() vfs.FS { return p.fs }

func (p *Pool) acquire(f *File) (vfs.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.gone {
		return nil, ErrNoFile
	}
	if f.handle == nil {
		for p.mu.open >= p.max && p.mu.oldest != nil {
			p.closeLocked(p.mu.oldest)
		}
		h, err := p.fs.OpenReadWrite(f.path(), vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
		f.handle = h
		p.mu.open++
	} else if f.users == 0 {
		p.unlink(f)
	}
	f.users++
	return f.handle, nil
}

func (p *Pool) release(f *File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.users--
	if f.users > 0 {
		return
	}
	f.old = p.mu.newest
	if p.mu.newest != nil {
		p.mu.newest.newer = f
	}
	p.mu.newest = f
	if p.mu.oldest == nil {
		p.mu.oldest = f
	}
	if f.gone || p.mu.open > p.max {
		p.closeLocked(f)
	}
}

func (p *Pool) unlink(f *File) {
	if f.newer != nil {
		f.newer.old = f.old
	} else if p.mu.newest == f {
		p.mu.newest = f.old
	}
	if f.old != nil {
		f.old.newer = f.newer
	} else if p.mu.oldest == f {
		p.mu.oldest = f.newer
	}
	f.newer, f.old = nil, nil
}

// closeLocked closes an open file that nobody uses.
func (p *Pool) closeLocked(f *File) {
	p.unlink(f)
	// What was written is synced by whoever asks for it through the set, which opens the
	// file again; closing has nothing to add.
	_ = f.handle.Close()
	f.handle = nil
	p.mu.open--
}

func (p *Pool) close(f *File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.handle != nil && f.users == 0 {
		p.closeLocked(f)
	}
}

func (p *Pool) forget(f *File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.gone = true
	if f.handle != nil && f.users == 0 {
		p.closeLocked(f)
	}
}
