//go:build unix

package node

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFirstByte takes a POSIX record lock, the kind that Java's FileChannel takes.
func lockFirstByte(f *os.File) error {
	region := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &region)
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EAGAIN) {
		return err
	}
	holder := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &holder); err == nil && holder.Type != unix.F_UNLCK && holder.Pid > 0 {
		return fmt.Errorf("%w by process %d", errLocked, holder.Pid)
	}
	return errLocked
}
