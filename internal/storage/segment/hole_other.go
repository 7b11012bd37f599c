//go:build !linux

package segment

import "github.com/cockroachdb/pebble/v2/vfs"

// nextData knows no holes here.
func nextData(_ vfs.File, at, size int64) (data, hole int64, ok bool) { return at, size, true }

// SyncFileSystem can't be asked for here.
func SyncFileSystem(vfs.FS, string) (bool, error) { return false, nil }
