package state

import (
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrFull answers commits while the disk has no room. Nothing of them is stored; later ones
// are taken again by themselves when there is room.
var ErrFull = errors.New("the disk is full: nothing is stored until there is room")

// room is what is left on the disk for the state.
//
// A log that can't be written is the end for Pebble, and with it for the process, which
// would then also stop what still works on a full disk. So a file of fixed size, the
// reserve, holds room that nobody else can take. When a write finds none, the reserve is
// removed and the write tried again: what is under way ends well, and so do a stop and the
// next start. From then on, and already when the disk is nearly full, commits are refused
// (full) until the disk has room for the reserve again.
//
// Somebody else may take what the reserve has freed. Then the write that found no room
// waits (stuck) until there is some; commits behind it are refused, it alone can not be.
// Before the loops run and after they end nothing waits and nothing is refused: the write
// fails as it is.
type room struct {
	fs   vfs.FS
	dir  string
	size int64 // of the reserve
	log  *slog.Logger

	open    atomic.Bool // the loops run
	full    atomic.Bool // commits are refused
	stuck   atomic.Bool // a write waits for room
	looked  atomic.Int64
	holds   sync.Mutex // while the reserve is made or removed
	end     chan struct{}
	once    sync.Once
	refused func() // called when a write begins to wait
	// opening is set while Pebble opens, and called when a write finds no room then.
	opening atomic.Pointer[func()]
}

const (
	reserveSize  = 16 << 20 // a start and a stop of Pebble fit in
	reserveName  = "reserve"
	roomNeeded   = 8 << 20 // beyond the reserve, before commits are taken again
	roomLeast    = 2 << 20 // with less than that the disk counts as full
	roomForWrite = 1 << 20 // what a write that waits looks for
	roomPause    = 250 * time.Millisecond
	roomLook     = 100 * time.Millisecond
)

func newRoom(o Options) *room {
	return &room{fs: o.FS, dir: o.Dir, size: o.Reserve, log: o.Log, end: make(chan struct{})}
}

// prepare is called before Pebble opens: it makes the reserve, or gives it up for this
// start when the disk is full.
func (r *room) prepare() error {
	if err := r.fs.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	free, known := r.free()
	switch {
	case known && free < roomLeast:
		r.full.Store(true)
		r.giveReserve()
		r.log.Error("the disk is full; nothing is stored until there is room", "dir", r.dir, "needed", r.size+roomNeeded)
	case r.reserved():
	case known && free < r.size+roomNeeded:
		r.full.Store(true)
		r.log.Error("the disk is nearly full; nothing is stored until there is room", "dir", r.dir, "free", free, "needed", r.size+roomNeeded)
	default:
		err := r.reserve()
		if !vfs.IsNoSpaceError(err) {
			return err
		}
		r.full.Store(true)
		r.log.Error("the disk is nearly full; nothing is stored until there is room", "dir", r.dir, "needed", r.size+roomNeeded)
	}
	return nil
}

// look closes and opens the gate; it asks the system at most once per roomLook.
func (r *room) look(now time.Time) {
	last := r.looked.Load()
	if now.UnixNano()-last < int64(roomLook) || !r.looked.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	free, known := r.free()
	if !r.full.Load() {
		if known && free < roomLeast && !r.full.Swap(true) {
			r.log.Error("the disk is full; nothing is stored until there is room", "dir", r.dir, "free", free, "needed", roomNeeded)
		}
		return
	}
	needed := int64(roomNeeded)
	if !r.reserved() {
		needed += r.size
	}
	if (known && free < needed) || r.reserve() != nil {
		return
	}
	r.full.Store(false)
	r.log.Info("there is room on the disk; everything is stored again", "dir", r.dir)
}

// refuses reports whether commits are refused now.
func (r *room) refuses() bool {
	if !r.open.Load() {
		return false
	}
	r.look(time.Now())
	return r.full.Load()
}

// hit is called when a write found no room; it is tried again once when hit returns.
func (r *room) hit() {
	if !r.full.Swap(true) {
		r.log.Error("the disk is full; nothing is stored until there is room", "dir", r.dir, "needed", r.size+roomNeeded)
	}
	if r.giveReserve() && r.writable() {
		return
	}
	if !r.open.Load() {
		if f := r.opening.Load(); f != nil {
			(*f)()
			select {} // Pebble would try again without a pause, and Open would wait for it
		}
		return
	}
	r.stuck.Store(true)
	defer r.stuck.Store(false)
	if r.refused != nil {
		r.refused()
	}
	tick := time.NewTicker(roomPause)
	defer tick.Stop()
	for !r.writable() {
		select {
		case <-tick.C:
		case <-r.end:
			return
		}
	}
}

// writable reports whether a write that waits may try again.
func (r *room) writable() bool {
	if free, known := r.free(); known {
		return free >= roomForWrite
	}
	name := r.fs.PathJoin(r.dir, reserveName+".try")
	err := r.allocate(name, roomForWrite)
	_ = r.fs.Remove(name)
	return err == nil
}

// giveUp ends waiting and refusing for good, and leaves room for the stop.
func (r *room) giveUp() {
	r.open.Store(false)
	r.once.Do(func() { close(r.end) })
	if r.full.Load() {
		r.giveReserve()
	}
}

func (r *room) free() (bytes int64, known bool) {
	u, err := r.fs.GetDiskUsage(r.dir)
	return int64(u.AvailBytes), err == nil
}

func (r *room) path() string { return r.fs.PathJoin(r.dir, reserveName) }

func (r *room) reserved() bool {
	_, err := r.fs.Stat(r.path())
	return err == nil
}

// reserve makes the reserve unless it is there. Half a reserve is none.
func (r *room) reserve() error {
	r.holds.Lock()
	defer r.holds.Unlock()
	if r.reserved() {
		return nil
	}
	err := r.allocate(r.path()+".new", r.size)
	if err == nil {
		err = r.fs.Rename(r.path()+".new", r.path())
	}
	if err != nil {
		_ = r.fs.Remove(r.path() + ".new")
	}
	return err
}

// giveReserve removes the reserve and reports whether there was one.
func (r *room) giveReserve() bool {
	r.holds.Lock()
	defer r.holds.Unlock()
	err := r.fs.Remove(r.path())
	if err != nil && !oserror.IsNotExist(err) {
		r.log.Error("the reserve can't be removed", "file", r.path(), "err", err)
	}
	return err == nil
}

// allocate makes a file that really has size bytes of the disk: where the system does not
// set them aside when asked, they are written.
func (r *room) allocate(name string, size int64) error {
	f, err := r.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	step, last := int64(4<<10), int64(1)
	if runtime.GOOS != "linux" {
		step, last = 1<<20, size
	} else if err = f.Preallocate(0, size); !vfs.IsNoSpaceError(err) {
		err = nil // not every file system can
	}
	zeros := make([]byte, step)
	for at := int64(0); at < last && err == nil; at += step {
		_, err = f.Write(zeros)
	}
	return errors.Join(err, f.Close())
}
