package segment

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestNames(t *testing.T) {
	if n := Name(1073741824); n != "00000000001073741824" {
		t.Fatal(n)
	}
	for name, want := range map[string]int64{"00000000001073741824": 1073741824, "1": -1, "0000000000000000000x": -1, "-0000000000000000001": -1, "99999999999999999999": -1} {
		if n, ok := ParseName(name); ok != (want >= 0) || (ok && n != want) {
			t.Errorf("%s: %d %t", name, n, ok)
		}
	}
}

// On the real file system and in memory alike: files of full size, reads across files,
// zeroing behind an offset, removal at both ends, few files open.
func TestSet(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			dir := fs.PathJoin(t.TempDir(), "log")
			pool := NewPool(fs, 2)
			s := NewSet(pool, dir, 8192)
			for i := range int64(5) {
				if err := s.Create(i*8192, true); err != nil {
					t.Fatal(err)
				}
				if err := s.WriteAt(bytes.Repeat([]byte{byte(i + 1)}, 8192), i*8192); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.WriteAt([]byte("xy"), 8191); err == nil {
				t.Fatal("a write crosses a file's end")
			}
			if pool.mu.open > 2 {
				t.Fatalf("%d files open", pool.mu.open)
			}
			p := make([]byte, 10000)
			if n, err := s.ReadAt(p, 8000); n != 10000 || err != nil || p[191] != 1 || p[192] != 2 || p[9999] != 3 {
				t.Fatalf("read %d: %v", n, err)
			}
			if _, err := s.ReadAt(p, 5*8192); !errors.Is(err, ErrNoFile) {
				t.Fatal(err)
			}
			if n, err := s.ReadAt(p, 5*8192-10); n != 10 || err != nil {
				t.Fatal(n, err)
			}
			if cut, err := s.ZeroFrom(3*8192 + 100); err != nil || cut != 8092 {
				t.Fatalf("cut %d: %v", cut, err)
			}
			if n, err := s.RemoveBefore(2*8192, 1); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			s2, err := OpenSet(pool, dir, 8192)
			if err != nil {
				t.Fatal(err)
			}
			var bases []int64
			for _, f := range s2.Files() {
				size, err := f.Size()
				if err != nil || size != 8192 {
					t.Fatal(size, err)
				}
				bases = append(bases, f.Base)
			}
			if fmt.Sprint(bases) != "[8192 16384 24576]" {
				t.Fatal(bases)
			}
			for at, want := range map[int64]int64{3 * 8192: 3*8192 + 100, 3*8192 + 100: 3*8192 + 100, 2 * 8192: 3 * 8192} {
				if end, err := s2.Dirty(at); err != nil || end != want {
					t.Fatalf("dirty from %d: %d %v", at, end, err)
				}
			}
			s.Close()
			s2.Close()
		})
	}
}
