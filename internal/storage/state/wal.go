package state

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walFS is the seam of the sync policy. Pebble answers a commit made with Sync when its
// write-ahead log was written *and* Sync of the file returned; without Sync it answers
// when the record is in a buffer of the process, which dies with it. So commits always
// ask for Sync, and under asynchronous flush this file system turns the log files' Sync
// into a note that they are dirty. What was answered is then in the kernel and survives
// kill -9; RunSync makes it durable once per interval.
//
// A log file that is closed is synced first: Pebble tolerates a torn tail in the last log
// only. Tables and manifests are always really synced. beforeSync runs before anything
// becomes durable, see Options.BeforeSync.
type walFS struct {
	vfs.FS
	sync       bool
	beforeSync func() error
	die        func(error)   // ends the database from a goroutine of Pebble's
	dirtied    chan struct{} // a log file became dirty
	mu         struct {
		sync.Mutex
		open map[*walFile]struct{}
	}
}

func newWALFS(fs vfs.FS, syncAlways bool, beforeSync func() error) *walFS {
	if beforeSync == nil {
		beforeSync = func() error { return nil }
	}
	w := &walFS{FS: fs, sync: syncAlways, beforeSync: beforeSync, dirtied: make(chan struct{}, 1)}
	w.mu.open = make(map[*walFile]struct{})
	return w
}

// Create wraps the files whose syncs matter here.
func (w *walFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := w.beforeMarker(name); err != nil {
		return nil, err
	}
	f, err := w.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return w.wrap(name, f), nil
}

// ReuseForWrite is Create for a recycled log file.
func (w *walFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return w.wrap(newname, f), nil
}

// OpenDir wraps a folder whose sync Pebble panics about.
func (w *walFS) OpenDir(name string) (vfs.File, error) {
	f, err := w.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &dirFile{File: f, fs: w}, nil
}

// Unwrap returns the file system below.
func (w *walFS) Unwrap() vfs.FS { return w.FS }

func (w *walFS) wrap(name string, f vfs.File) vfs.File {
	switch name = w.PathBase(name); {
	case strings.HasSuffix(name, ".log"):
		file := &walFile{File: f, fs: w}
		w.mu.Lock()
		w.mu.open[file] = struct{}{}
		w.mu.Unlock()
		return file
	case strings.HasPrefix(name, "MANIFEST-"):
		return &manifestFile{File: f, fs: w}
	}
	return f
}

// syncAll syncs the open log files that are dirty.
func (w *walFS) syncAll() error {
	w.mu.Lock()
	open := make([]*walFile, 0, len(w.mu.open))
	for f := range w.mu.open {
		open = append(open, f)
	}
	w.mu.Unlock()
	var err error
	for _, f := range open {
		err = errors.Join(err, f.syncNow())
	}
	return err
}

// walFile is one write-ahead log. syncing is held during a real sync and by Close, and
// never by a Sync that is only noted: that one must not wait for the disk.
type walFile struct {
	vfs.File
	fs      *walFS
	dirty   atomic.Bool
	syncing struct {
		sync.Mutex
		closed bool
	}
}

// Sync is Pebble's wish to make what it wrote durable.
func (f *walFile) Sync() error { return f.SyncData() }

// SyncData is Sync without the file's own times.
func (f *walFile) SyncData() error {
	first := !f.dirty.Swap(true)
	if f.fs.sync {
		return f.syncNow()
	}
	if first {
		select {
		case f.fs.dirtied <- struct{}{}:
		default:
		}
	}
	return nil
}

// syncNow clears dirty before it syncs: a write that comes meanwhile marks it again.
func (f *walFile) syncNow() error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.syncing.closed || !f.dirty.Swap(false) {
		return nil
	}
	err := f.fs.beforeSync()
	if err == nil {
		err = f.File.SyncData()
	}
	if err != nil {
		f.dirty.Store(true)
	}
	return err
}

// Close syncs what is dirty and closes.
func (f *walFile) Close() error {
	err := f.syncNow()
	f.syncing.Lock()
	f.syncing.closed = true
	f.syncing.Unlock()
	f.fs.mu.Lock()
	delete(f.fs.mu.open, f)
	f.fs.mu.Unlock()
	return errors.Join(err, f.File.Close())
}

// manifestFile makes a flushed table part of the database: what the table holds becomes
// durable with its sync.
type manifestFile struct {
	vfs.File
	fs *walFS
}

// Sync runs beforeSync, then syncs.
func (f *manifestFile) Sync() error {
	if err := f.fs.beforeSync(); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData is Sync without the file's own times.
func (f *manifestFile) SyncData() error {
	if err := f.fs.beforeSync(); err != nil {
		return err
	}
	return f.File.SyncData()
}

// dirFile is an open folder. Without its sync the file that says which manifest counts may
// not be there after a power cut; Pebble panics then, on whatever goroutine it is.
type dirFile struct {
	vfs.File
	fs *walFS
}

// Sync returns an error only where the panic that follows is recovered.
func (f *dirFile) Sync() error {
	err := f.File.Sync()
	if err != nil && f.fs.die != nil && !ours() {
		f.fs.die(fmt.Errorf("sync the folder of the state database: %w", err))
	}
	return err
}
