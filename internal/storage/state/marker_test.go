package state

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Power is cut before each write of an opening, a commit and a close, with any part of what
// was not synced lost. The database opens again and has what was committed.
func TestPowerCutBeforeEveryWrite(t *testing.T) {
	for seed := range uint64(8) {
		for n := 0; ; n++ {
			if !cutBefore(t, n, seed) {
				break
			}
			if t.Failed() {
				return
			}
		}
	}
}

// cutBefore reports whether there was an n-th write.
func cutBefore(t *testing.T, n int, seed uint64) bool {
	t.Helper()
	fs := vfs.NewCrashableMem()
	commit := func(db *DB, key string) bool {
		b := db.NewBatch()
		b.Put(Meta, []byte(key), []byte("x"))
		return db.Commit(b) == nil
	}
	db := openOn(t, fs)
	commit(db, "before")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // Pebble writes from goroutines of its own; guards n and left
	var left *vfs.MemFS
	disk := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			if n--; n == -1 {
				left = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, uint64(n)))})
			}
		}
		return nil
	}))
	db = openOn(t, disk)
	committed := commit(db, "meanwhile")
	mu.Lock()
	committed = committed && left == nil
	mu.Unlock()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if left == nil {
		return false
	}
	db = openOn(t, left)
	defer db.Close()
	for key, must := range map[string]bool{"before": true, "meanwhile": committed} {
		if _, ok, err := db.Get(Meta, []byte(key)); err != nil || must && !ok {
			t.Errorf("seed %d: what was committed %s the cut is there: %v (%v)", seed, key, ok, err)
		}
	}
	return true
}

func openOn(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	db, err := Open(Options{FS: fs, Dir: "state", Sync: true})
	if err != nil {
		t.Fatal(fmt.Errorf("open: %w", err))
	}
	return db
}
