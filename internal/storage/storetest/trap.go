package storetest

import (
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Trap makes a picture of a disk before the n-th write to it: what a crash there leaves.
type Trap struct {
	// Sprung is called at that moment.
	Sprung func()

	mu       sync.Mutex
	armed    bool
	left     int
	unsynced int
	rng      *rand.Rand
	caught   *vfs.MemFS
}

// Arm waits for the write after the next few. unsynced is the percentage of what was not
// synced that survives: 100 for a killed process.
func (t *Trap) Arm(few, unsynced int, rng *rand.Rand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed, t.left, t.unsynced, t.rng = true, few, unsynced, rng
}

// Disarm lets all further writes pass.
func (t *Trap) Disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
}

// Wrap watches the writes to fs.
func (t *Trap) Wrap(fs *vfs.MemFS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			t.write(fs)
		}
		return nil
	}))
}

func (t *Trap) write(fs *vfs.MemFS) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.armed {
		return
	}
	if t.left--; t.left >= 0 {
		return
	}
	t.catch(fs)
}

// Now springs the trap without a write.
func (t *Trap) Now(fs *vfs.MemFS) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.catch(fs)
}

func (t *Trap) catch(fs *vfs.MemFS) {
	t.armed = false
	t.caught = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: t.unsynced, RNG: t.rng})
	if t.Sprung != nil {
		t.Sprung()
	}
}

// Caught reports whether there is a picture.
func (t *Trap) Caught() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.caught != nil
}

// Take returns the picture, nil if there is none, and forgets it.
func (t *Trap) Take() *vfs.MemFS {
	t.mu.Lock()
	defer t.mu.Unlock()
	caught := t.caught
	t.caught, t.armed = nil, false
	return caught
}
