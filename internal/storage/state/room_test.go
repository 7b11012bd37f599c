package state

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage/storetest"
)

const mib = 1 << 20

// running opens a database on disk and waits until its committer runs.
func running(t *testing.T, disk vfs.FS) (d *DB, stop func()) {
	t.Helper()
	d = open(t, disk, true)
	stop = run(t, d)
	for !d.room.open.Load() { // until the committer runs, commits happen here
		runtime.Gosched()
	}
	return d, stop
}

// commits tries until a commit is answered as wanted.
func commits(t *testing.T, d *DB, key string, want error) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		err := d.Commit(put(d, key, strings.Repeat("v", 100)))
		if errors.Is(err, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is answered with %v, want %v", key, err, want)
		}
	}
}

// waiter is a source with somebody who waits.
type waiter struct {
	value   string
	answers chan error
}

func (w *waiter) Collect(b *Batch) func(error) {
	b.Put(Topics, []byte("waiter"), []byte(w.value))
	return func(err error) { w.answers <- err }
}

func (w *waiter) Refuse(err error) { w.answers <- err }

// A full disk refuses commits, with or without room taken by surprise, and takes them again
// by itself; what was answered with OK is there after a restart, what was refused is not.
func TestFullDiskRefuses(t *testing.T) {
	for name, left := range map[string]int64{"nothing left": 0, "seen before a write fails": mib, "the log fills what is left": 3 * mib} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			disk := storetest.NewDisk(mem, 64*mib)
			d, stop := running(t, disk)
			if err := d.Commit(put(d, "before", "v")); err != nil {
				t.Fatal(err)
			}
			disk.Fill(left)
			taken := 0
			for i := 0; ; i++ {
				err := d.Commit(put(d, fmt.Sprintf("k%05d", i), strings.Repeat("v", 10_000)))
				if errors.Is(err, ErrFull) {
					break
				}
				if err != nil || i > 5000 {
					t.Fatalf("commit %d: %v", i, err)
				}
				taken++
			}
			if err := d.Full(); !errors.Is(err, ErrFull) {
				t.Error(err)
			}
			w := &waiter{"kept", make(chan error, 1)}
			d.CommitSource(w)
			if err := <-w.answers; !errors.Is(err, ErrFull) {
				t.Errorf("who waits for a source is told %v", err)
			}
			disk.Free()
			commits(t, d, "after", nil)
			if err := <-w.answers; err != nil {
				t.Errorf("the source is answered with %v when there is room", err)
			}
			if d.Full() != nil || !d.room.reserved() {
				t.Error("the reserve is not back")
			}
			stop()
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = open(t, disk, true)
			defer d.Close()
			n := 0
			for _, kv := range strings.Fields(dump(t, d, Topics)) {
				if strings.HasPrefix(kv, "k") {
					n++
				}
			}
			if n != taken {
				t.Errorf("%d commits were answered with OK, %d are there", taken, n)
			}
			if v, _, _ := d.Get(Topics, []byte("waiter")); string(v) != "kept" {
				t.Errorf("the source's value is %q", v)
			}
		})
	}
}

// Somebody else takes what the reserve frees: the commit that is under way waits for room,
// those behind it are refused, and all is well when there is room.
func TestRoomIsTakenAway(t *testing.T) {
	disk := storetest.NewDisk(vfs.NewMem(), 64*mib)
	d, stop := running(t, disk)
	d.room.looked.Store(time.Now().Add(time.Hour).UnixNano()) // nobody sees it come
	disk.Grab()
	first := make(chan error, 1)
	d.CommitAsync(put(d, "first", "v"), func(err error) { first <- err })
	for !d.room.stuck.Load() {
		runtime.Gosched()
	}
	if err := d.Commit(put(d, "second", "v")); !errors.Is(err, ErrFull) {
		t.Errorf("behind it: %v", err)
	}
	disk.Free()
	if err := <-first; err != nil {
		t.Errorf("the commit that waited: %v", err)
	}
	d.room.looked.Store(0)
	commits(t, d, "third", nil)
	stop()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A stop and a start on a disk without a free byte, again and again: it opens, has what was
// answered, refuses, and takes commits again when there is room.
func TestRestartWithoutRoom(t *testing.T) {
	mem := vfs.NewMem()
	// One that was closed without any room keeps its lock as long as the process lives.
	disk := storetest.NewDisk(unlocked{mem}, 64*mib)
	d, stop := running(t, disk)
	for i := range 100 {
		if err := d.Commit(put(d, fmt.Sprintf("k%03d", i), strings.Repeat("v", 30_000))); err != nil {
			t.Fatal(err)
		}
	}
	disk.Fill(0)
	for round := range 4 {
		commits(t, d, "refused", ErrFull)
		stop()
		if err := d.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		d, stop = running(t, disk)
		commits(t, d, "refused", ErrFull)
		if n := strings.Count(dump(t, d, Topics), "k"); n != 100 {
			t.Fatalf("round %d: %d of 100", round, n)
		}
	}
	disk.Fill(0) // the reserve is used up
	stop()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{FS: disk, Dir: "state", Sync: true}); !vfs.IsNoSpaceError(err) && !errors.Is(err, ErrFull) {
		t.Fatalf("the start that can't be: %v", err)
	}
	disk.Free()
	d, stop = running(t, disk)
	commits(t, d, "after", nil)
	if n := strings.Count(dump(t, d, Topics), "k"); n != 100 {
		t.Errorf("%d of 100", n)
	}
	stop()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every write and every new file of an open finds no room from the n-th on: the open
// succeeds or ends with an error that says so, it never hangs nor panics, and what was
// there is there when there is room.
func TestOpenWithoutRoom(t *testing.T) {
	for n := int64(0); ; n++ {
		mem := vfs.NewMem()
		d := open(t, mem, true)
		if err := d.Commit(put(d, "k", strings.Repeat("v", 5000))); err != nil {
			t.Fatal(err)
		}
		d = nil // killed: the log is to be read
		var count int64
		hit := false
		faulty := errorfs.Wrap(unlocked{mem}, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpRemove || op.Kind == errorfs.OpFileClose {
				return nil
			}
			if count++; count <= n {
				return nil
			}
			hit = true
			return syscall.ENOSPC
		}))
		opened := make(chan error, 1)
		go func() {
			d, err := Open(Options{FS: faulty, Dir: "state", Sync: true})
			if err == nil {
				err = d.Close()
			}
			opened <- err
		}()
		select {
		case err := <-opened:
			if err != nil && (!vfs.IsNoSpaceError(err) && !errors.Is(err, ErrFull) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("n=%d: %v", n, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("n=%d: the open hangs", n)
		}
		again := open(t, unlocked{mem}, true)
		if _, ok, err := again.Get(Topics, []byte("k")); !ok || err != nil {
			t.Errorf("n=%d: lost: %v", n, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		if !hit {
			t.Logf("%d writes", n)
			return
		}
	}
}

// unlocked lets a second database of the same process have the folder.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return nopCloser{}, nil }

type nopCloser struct{}

func (nopCloser) Close() error { return nil }
