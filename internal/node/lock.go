package node

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errLocked says that somebody else holds the lock.
var errLocked = errors.New("its lock file is held")

// locked are the lock files that this process holds: the system's locks belong to the
// process, so they do not keep two nodes of one process apart.
var locked = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// fileLock is an exclusive lock on the first byte of a file, as Apache's broker takes it.
type fileLock struct {
	path string
	file *os.File
}

// lockFile takes the lock or says errLocked at once.
func lockFile(path string) (_ *fileLock, err error) {
	locked.Lock()
	defer locked.Unlock()
	if locked.paths[path] {
		return nil, fmt.Errorf("%w by this process", errLocked)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFirstByte(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	// What it says is for people; a full disk can't take it and does not keep a server from
	// starting.
	if _, err := f.WriteAt([]byte("lock"), 0); err != nil && !vfs.IsNoSpaceError(err) {
		_ = f.Close()
		return nil, err
	}
	locked.paths[path] = true
	return &fileLock{path: path, file: f}, nil
}

// release gives the lock back; the file stays, so that nobody locks a removed one.
func (l *fileLock) release() error {
	locked.Lock()
	defer locked.Unlock()
	delete(locked.paths, l.path)
	return l.file.Close()
}
