package state

import (
	"fmt"
	"log/slog"

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

func pebbleOptions(fs vfs.FS, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS: fs,
		// Not newer: from FormatWALSyncChunks on, log records carry how far the log was
		// synced, and a hole below that is corruption. Our syncs are sometimes no-ops, so a
		// power cut may leave such holes, and everything behind the hole is simply gone.
		FormatMajorVersion:          pebble.FormatColumnarBlocks,
		CacheSize:                   cacheBytes,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       32,
		MaxOpenFiles:                openFiles,
		MaxManifestFileSize:         1 << 20,
		Logger:                      pebbleLog{log},
		LoggerAndTracer:             nil,
	}
	o.Experimental.FileCacheShards = 1
	o.Experimental.L0CompactionConcurrency = 10
	return o
}

// pebbleLog passes Pebble's errors on and drops its chatter.
type pebbleLog struct{ log *slog.Logger }

// Infof drops.
func (l pebbleLog) Infof(string, ...interface{}) {}

// Errorf passes on.
func (l pebbleLog) Errorf(format string, args ...interface{}) {
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is called when the database can't go on.
func (l pebbleLog) Fatalf(format string, args ...interface{}) {
	panic("pebble: " + fmt.Sprintf(format, args...))
}
