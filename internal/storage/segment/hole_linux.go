package segment

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// nextData is the first run of bytes at or after at, before size, that may be something
// else than a hole; false when there is none. The file's own position, which it moves, is
// used by nobody.
func nextData(h vfs.File, at, size int64) (data, hole int64, ok bool) {
	fd := h.Fd()
	if fd == vfs.InvalidFd {
		return at, size, true
	}
	data, err := unix.Seek(int(fd), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) || (err == nil && data >= size) {
		return 0, 0, false
	}
	if err != nil {
		return at, size, true
	}
	if hole, err = unix.Seek(int(fd), data, unix.SEEK_HOLE); err != nil {
		hole = size
	}
	return data, min(hole, size), true
}

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
