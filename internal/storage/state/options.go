package state

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The sizes are for small state: the whole working set of a broker is a few megabytes,
// since the domain packages hold it in memory and read it at start only.
const (
	cacheBytes    = 2 << 20
	memTableBytes = 4 << 20 // Pebble begins at 256 KiB and doubles
	openFiles     = 64
)

func pebbleOptions(fs vfs.FS, d *DB) *pebble.Options {
	o := &pebble.Options{
		FS: fs,
		// Not newer: from FormatWALSyncChunks on, log records carry how far the log was
		// synced, and a hole below that is corruption. Our syncs are sometimes no-ops, so a
		// power cut may leave such holes, and everything behind the hole is simply gone.
		FormatMajorVersion:          pebble.FormatColumnarBlocks,
		CacheSize:                   cacheBytes,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       10, // tables of 4 MiB; of four a wave of timers was merged twice as often
		L0StopWritesThreshold:       32,
		MaxOpenFiles:                openFiles,
		MaxManifestFileSize:         1 << 20,
		// They are collected beside Open, and crash where it fails; tables of this size need none.
		DisableTableStats: true,
		Logger:            pebbleLog{d},
		EventListener:     &pebble.EventListener{BackgroundError: d.flushFailed, DataCorruption: d.corrupted},
	}
	o.Experimental.FileCacheShards = 1
	o.Experimental.L0CompactionConcurrency = 10
	return o
}

// flushFailed is told of a flush or compaction that failed and that Pebble will try again,
// without a pause. While Pebble opens, Open would wait for it for ever.
func (d *DB) flushFailed(err error) {
	if d.room.opening.Load() != nil {
		d.fail(err)
		select {}
	}
	now := time.Now().Unix()
	if d.complained.Swap(now) != now {
		d.opts.Log.Error("a flush of the state database failed and is tried again", "dir", d.opts.Dir, "err", err)
	}
}

// corrupted is told of a table that can't be read, whose reader gets the error.
func (d *DB) corrupted(info pebble.DataCorruptionInfo) {
	d.opts.Log.Error("a table of the state database is damaged", "file", info.Path, "err", info.Details)
}

// pebbleLog passes Pebble's errors on and drops its chatter.
type pebbleLog struct{ d *DB }

// Infof drops.
func (l pebbleLog) Infof(string, ...interface{}) {}

// Errorf passes on.
func (l pebbleLog) Errorf(format string, args ...interface{}) {
	l.d.opts.Log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is called when the database can't go on, and must not return.
func (l pebbleLog) Fatalf(format string, args ...interface{}) {
	why := fmt.Errorf("pebble: "+format, args...)
	if ours() {
		panic(why)
	}
	l.d.die(why)
}

// die ends the database from one of Pebble's goroutines, where a panic would end the process
// with a stack for a message: the goroutine stands still, with the locks that it holds, and
// the committer ends with the failure. Only where a commit waits for one of those locks there
// is no other way.
func (d *DB) die(why error) {
	d.fail(why)
	for d.applying.Load() {
		if time.Sleep(time.Second); d.applying.Load() {
			panic(why)
		}
	}
	select {}
}

// ours reports whether a function of this package that recovers is on the stack.
func ours() bool { return calledBy("state.(*DB).callOpen", "state.(*DB).apply", "state.(*DB).Close") }

// calledBy reports whether a function with one of these names is on the stack.
func calledBy(names ...string) bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		for _, name := range names {
			if strings.HasSuffix(f.Function, name) {
				return true
			}
		}
		if !more {
			return false
		}
	}
}

// recovered makes a panic the error of the function that defers it.
func recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = p
	default:
		*err = fmt.Errorf("%v", p)
	}
}
