package storetest

import (
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a disk that can be full: a file system on which every file takes the blocks that
// were written or set aside, and one for itself. What finds no block fails with ENOSPC.
//
// It counts what goes through it; files that the file system below holds already are free.
type Disk struct {
	vfs.FS
	mu       sync.Mutex
	total    int64
	others   int64 // blocks that somebody else has taken
	greedy   bool  // they also take what is freed
	used     int64
	files    map[string]map[int64]struct{}
	refusals int
}

const diskBlock = 4 << 10

// NewDisk is a disk of the given size over fs.
func NewDisk(fs vfs.FS, bytes int64) *Disk {
	return &Disk{FS: fs, total: bytes / diskBlock, files: make(map[string]map[int64]struct{})}
}

// Fill lets somebody else take all that is free but for the bytes named.
func (d *Disk) Fill(but int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others = max(0, d.total-d.used-but/diskBlock)
}

// Grab is Fill of everything, and of everything that is freed from now on.
func (d *Disk) Grab() {
	d.Fill(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.greedy = true
}

// Free lets them give it all back.
func (d *Disk) Free() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others, d.greedy = 0, false
}

// Refusals counts what has failed for lack of room.
func (d *Disk) Refusals() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusals
}

// GetDiskUsage tells the truth.
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := uint64(max(0, d.total-d.used-d.others) * diskBlock)
	total := uint64(d.total * diskBlock)
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: total, UsedBytes: total - free}, nil
}

// inode is the block of the file itself.
const inode = -1

// take gives blocks [from, to) to a file, all that are free before it fails.
func (d *Disk) take(name string, from, to int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		f = make(map[int64]struct{})
		d.files[name] = f
	}
	for b := from; b < to; b++ {
		if _, has := f[b]; has {
			continue
		}
		if d.used+d.others >= d.total {
			d.refusals++
			return syscall.ENOSPC
		}
		f[b] = struct{}{}
		d.used++
	}
	return nil
}

func (d *Disk) drop(name string) {
	freed := int64(len(d.files[name]))
	d.used -= freed
	if d.greedy {
		d.others += freed
	}
	delete(d.files, name)
}

// Create takes a block.
func (d *Disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	d.drop(name)
	d.mu.Unlock()
	if err := d.take(name, inode, 0); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name, c)
	return &diskFile{File: f, d: d, name: name}, err
}

// OpenReadWrite takes a block where the file is new.
func (d *Disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if _, err := d.FS.Stat(name); err != nil {
		if err := d.take(name, inode, 0); err != nil {
			return nil, err
		}
	}
	f, err := d.FS.OpenReadWrite(name, c, o...)
	return &diskFile{File: f, d: d, name: name}, err
}

// ReuseForWrite keeps the blocks.
func (d *Disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	if err == nil {
		d.move(from, to)
	}
	return &diskFile{File: f, d: d, name: to}, err
}

// Rename keeps the blocks and frees those of the file that it replaces.
func (d *Disk) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if err == nil {
		d.move(from, to)
	}
	return err
}

func (d *Disk) move(from, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(to)
	d.files[to] = d.files[from]
	delete(d.files, from)
}

// Remove frees the blocks.
func (d *Disk) Remove(name string) error {
	err := d.FS.Remove(name)
	if err == nil {
		d.mu.Lock()
		d.drop(name)
		d.mu.Unlock()
	}
	return err
}

// RemoveAll frees the blocks of everything in a folder.
func (d *Disk) RemoveAll(dir string) error {
	err := d.FS.RemoveAll(dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.files {
		if strings.HasPrefix(name, dir+"/") || name == dir {
			d.drop(name)
		}
	}
	return err
}

// Unwrap returns the file system below.
func (d *Disk) Unwrap() vfs.FS { return d.FS }

type diskFile struct {
	vfs.File
	d    *Disk
	name string
	at   int64
}

func (f *diskFile) takeBytes(at, n int64) error {
	return f.d.take(f.name, at/diskBlock, (at+n+diskBlock-1)/diskBlock)
}

// Write writes behind what was written.
func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.takeBytes(f.at, int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.at += int64(n)
	return n, err
}

// WriteAt leaves holes, which take nothing.
func (f *diskFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.takeBytes(at, int64(len(p))); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// Preallocate sets blocks aside; without room for all of them, none.
func (f *diskFile) Preallocate(at, n int64) error {
	u, _ := f.d.GetDiskUsage("")
	if int64(u.AvailBytes) < n {
		return syscall.ENOSPC
	}
	return f.takeBytes(at, n)
}
