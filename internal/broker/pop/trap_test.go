package pop

import (
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// trap makes a picture of the disk before the n-th write from now: what a crash there
// leaves.
type trap struct {
	mu       sync.Mutex
	armed    bool
	left     int
	unsynced int
	rng      *rand.Rand
	mark     func() int
	caught   *vfs.MemFS
	caughtAt int // appends of the store by then
}

// wrap watches the writes to fs.
func (t *trap) wrap(fs *vfs.MemFS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			t.write(fs)
		}
		return nil
	}))
}

func (t *trap) write(fs *vfs.MemFS) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.armed {
		return
	}
	if t.left--; t.left >= 0 {
		return
	}
	t.armed = false
	t.caught = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: t.unsynced, RNG: t.rng})
	t.caughtAt = t.mark()
}

func (t *trap) closed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.caught != nil
}

// take returns the picture and is ready for the next.
func (t *trap) take() *vfs.MemFS {
	t.mu.Lock()
	defer t.mu.Unlock()
	caught := t.caught
	t.caught, t.armed = nil, false
	return caught
}
