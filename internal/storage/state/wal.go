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
//
// Pebble is not told what fails with a log file. Where one takes over from another it would panic
// without a lock that a caller's defer releases, and no recover survives that. The failure is
// lost instead, and answers every commit from then on: each has waited for its Sync.
type walFS struct {
	vfs.FS
	sync       bool
	beforeSync func() error
	die        func(error)   // ends the database from a goroutine of Pebble's
	dirtied    chan struct{} // a log file became dirty
	lost       atomic.Pointer[error]
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
	create := func() (vfs.File, error) { return w.FS.Create(name, category) }
	if strings.HasSuffix(name, ".log") {
		return w.newLog(name, create)
	}
	f, err := create()
	if err == nil && strings.HasPrefix(w.PathBase(name), "MANIFEST-") {
		return &manifestFile{File: f, fs: w}, nil
	}
	return f, err
}

// ReuseForWrite is Create for a recycled log file.
func (w *walFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return w.newLog(newname, func() (vfs.File, error) { return w.FS.ReuseForWrite(oldname, newname, category) })
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

// newLog makes a log file; one in memory where it can't be, or must not: with another behind it a
// log may not have a torn end.
func (w *walFS) newLog(name string, create func() (vfs.File, error)) (f vfs.File, err error) {
	if err = w.failure(); err == nil {
		f, err = create()
	}
	if err != nil && w.lose(err) {
		f, err = vfs.NewMem().Create(w.PathBase(name), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, err
	}
	file := &walFile{File: f, fs: w}
	w.mu.Lock()
	w.mu.open[file] = struct{}{}
	w.mu.Unlock()
	return file, nil
}

// lose keeps from Pebble what fails while one log file takes over from another, and reports
// whether that is so. Elsewhere, while it opens, Pebble may know.
func (w *walFS) lose(err error) bool {
	rotates := calledBy("pebble/v2.(*DB).rotateWAL")
	if rotates {
		w.keep(err)
	}
	return rotates
}

func (w *walFS) keep(err error) {
	if err != nil {
		w.lost.CompareAndSwap(nil, &err)
	}
}

// failure is what has failed first.
func (w *walFS) failure() error {
	if lost := w.lost.Load(); lost != nil {
		return *lost
	}
	return nil
}

// syncAll syncs the open log files that are dirty.
func (w *walFS) syncAll() error {
	w.mu.Lock()
	open := make([]*walFile, 0, len(w.mu.open))
	for f := range w.mu.open {
		open = append(open, f)
	}
	w.mu.Unlock()
	err := w.failure()
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

// Write writes, but nothing behind what could not be written: an end may be torn, a middle not.
func (f *walFile) Write(b []byte) (int, error) {
	if f.fs.failure() == nil {
		_, err := f.File.Write(b)
		f.fs.keep(err)
	}
	return len(b), nil
}

// Sync is Pebble's wish to make what it wrote durable.
func (f *walFile) Sync() error { return f.SyncData() }

// SyncData is Sync without the file's own times.
func (f *walFile) SyncData() error {
	first := !f.dirty.Swap(true)
	if f.fs.sync {
		f.fs.keep(f.syncNow())
		return nil
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
	f.fs.keep(errors.Join(err, f.File.Close()))
	return nil
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
	if err == nil || f.fs.lose(err) {
		return nil
	}
	if f.fs.die != nil && !ours() {
		f.fs.die(fmt.Errorf("sync the folder of the state database: %w", err))
	}
	return err
}
