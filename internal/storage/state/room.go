package state

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// room waits for space on a full disk. A log that can't be written is the end for Pebble,
// and with it for the process, which would then also stop what still works on a full disk.
// So while the loops run, a write that finds no space waits until there is some, and is
// tried again; commits wait behind it. Before they run (start) and once they are told to
// end, it fails as it is.
type room struct {
	fs   vfs.FS
	dir  string
	log  *slog.Logger
	open atomic.Bool // the loops run
	end  chan struct{}
	once sync.Once
}

const (
	roomNeeded = 8 << 20 // bytes; a new log file of Pebble's and a table fit
	roomPause  = 250 * time.Millisecond
)

func newRoom(o Options) *room {
	return &room{fs: o.FS, dir: o.Dir, log: o.Log, end: make(chan struct{})}
}

// wait returns when there is room, or when nobody is to wait any more.
func (r *room) wait() {
	if !r.open.Load() {
		return
	}
	r.log.Error("the disk is full; state is written again when there is room", "dir", r.dir, "needed", roomNeeded)
	tick := time.NewTicker(roomPause)
	defer tick.Stop()
	for {
		u, err := r.fs.GetDiskUsage(r.dir)
		if err != nil {
			return
		}
		if u.AvailBytes >= roomNeeded {
			r.log.Info("there is room on the disk; state is written again", "dir", r.dir)
			return
		}
		select {
		case <-tick.C:
		case <-r.end:
			return
		}
	}
}

// giveUp ends waiting for good.
func (r *room) giveUp() {
	r.open.Store(false)
	r.once.Do(func() { close(r.end) })
}
