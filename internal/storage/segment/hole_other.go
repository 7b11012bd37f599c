//go:build !linux

package segment

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// nextData knows no holes here.
func nextData(_ vfs.File, at int64) (int64, bool) { return at, true }

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// SyncFileSystem can't be asked for here.
func SyncFileSystem(vfs.FS, string) (bool, error) { return false, nil }
