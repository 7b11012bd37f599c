package state

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// smallDisk is a disk that can be full.
type smallDisk struct {
	vfs.FS
	full    atomic.Bool
	refused atomic.Int64
	asked   chan struct{}
}

func (d *smallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return &smallFile{f, d}, err
}

func (d *smallDisk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return &smallFile{f, d}, err
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.full.Load() {
		select {
		case d.asked <- struct{}{}:
		default:
		}
		return vfs.DiskUsage{TotalBytes: 1 << 30}, nil
	}
	return vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: 1 << 29}, nil
}

type smallFile struct {
	vfs.File
	d *smallDisk
}

func (f *smallFile) Write(p []byte) (int, error) {
	if f.d.full.Load() {
		f.d.refused.Add(1)
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

// A full disk makes commits wait; with room they go on, and nothing is lost.
func TestFullDiskWaitsForRoom(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem(), asked: make(chan struct{}, 1)}
	d := open(t, disk, true)
	stop := run(t, d)
	for !d.room.open.Load() { // until the committer runs, commits happen here
		runtime.Gosched()
	}
	disk.full.Store(true)
	done := make(chan error, 1)
	d.CommitAsync(put(d, "k", "v"), func(err error) { done <- err })
	<-disk.asked
	select {
	case err := <-done:
		t.Fatalf("answered on a full disk: %v", err)
	default:
	}
	disk.full.Store(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(put(d, "l", "w")); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, disk, true)
	defer d.Close()
	if got := dump(t, d, Topics); got != "k=v l=w" {
		t.Errorf("after a restart: %s", got)
	}
	if disk.refused.Load() == 0 {
		t.Error("nothing was refused")
	}
}
