package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// nextData is the first position at or after at that may hold something else than a
// hole; false when there is none. The file's own position, which it moves, is used by
// nobody.
func nextData(h vfs.File, at int64) (int64, bool) {
	fd := h.Fd()
	if fd == vfs.InvalidFd {
		return at, true
	}
	next, err := unix.Seek(int(fd), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return 0, false
	}
	if err != nil {
		return at, true
	}
	return next, true
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// SyncFileSystem makes everything of the file system that dir is on durable; false when
// the system can't be asked.
func SyncFileSystem(fs vfs.FS, dir string) (bool, error) {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	fd := d.Fd()
	if fd == vfs.InvalidFd {
		return false, nil
	}
	if err := unix.Syncfs(int(fd)); err != nil {
		return false, fmt.Errorf("%w: file system of %s: %w", ErrSync, dir, err)
	}
	return true, nil
}
