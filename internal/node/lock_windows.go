package node

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFirstByte takes the kind of lock that Java's FileChannel takes.
func lockFirstByte(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return errLocked
	}
	return err
}
