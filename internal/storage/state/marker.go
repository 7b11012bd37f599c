package state

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble says which of its manifests counts by the name of an empty file, the marker. To
// move it, it creates the new one, removes the old one, and then syncs the folder. Until
// then a power cut may leave any of these changes without the others: a marker that names
// a manifest which is not there, or no marker, which Pebble takes for a new database.
// So what came before a step on the marker is made durable first.

// Remove removes a file.
func (w *walFS) Remove(name string) error {
	if err := w.beforeMarker(name); err != nil {
		return err
	}
	return w.FS.Remove(name)
}

// beforeMarker syncs the folder of name if that is a marker.
func (w *walFS) beforeMarker(name string) error {
	if !strings.HasPrefix(w.PathBase(name), "marker.") {
		return nil
	}
	dir, err := w.FS.OpenDir(w.PathDir(name))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if e := dir.Close(); err == nil {
		err = e
	}
	return err
}

var _ vfs.FS = (*walFS)(nil)
