package state

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// killed is the folder of a database that was killed, or closed: n values of a size.
func killed(t *testing.T, n, size int, closed bool) vfs.FS {
	t.Helper()
	mem := vfs.NewMem()
	d := open(t, mem, true)
	for i := range n {
		if err := d.Commit(put(d, fmt.Sprintf("k%04d", i), strings.Repeat("v", size))); err != nil {
			t.Fatal(err)
		}
	}
	if closed {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return unlocked{mem}
}

// newest is the last file of the folder whose name begins or ends with part.
func newest(t *testing.T, fs vfs.FS, part string) string {
	t.Helper()
	names, err := fs.List("state")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if strings.HasPrefix(name, part) || strings.HasSuffix(name, part) {
			return "state/" + name
		}
	}
	t.Fatalf("no %s in %v", part, names)
	return ""
}

// change replaces a file's bytes.
func change(t *testing.T, fs vfs.FS, path string, how func(b []byte) []byte) {
	t.Helper()
	b, err := readAll(fs, path)
	if err == nil {
		err = writeAll(fs, path, how(b))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 0x40; return b }
}

// reopen opens the folder and returns what is there and what was logged.
func reopen(t *testing.T, fs vfs.FS) (values int, logged string, err error) {
	t.Helper()
	var text bytes.Buffer
	d, err := Open(Options{FS: fs, Dir: "state", Sync: true, Log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err == nil {
		defer d.Close()
		err = d.Scan(Topics, nil, func([]byte, []byte) error { values++; return nil })
	}
	return values, text.String(), err
}

// A log that was cut anywhere, or zeroed from there on, is what a crash leaves: what is
// before the cut is there, and nobody is alarmed.
func TestTornTailIsNoDamage(t *testing.T) {
	fs := killed(t, 40, 1500, false)
	log := newest(t, fs, ".log")
	whole, err := readAll(fs, log)
	if err != nil {
		t.Fatal(err)
	}
	last := 40
	for cut := len(whole) - 1; cut > 0; cut -= 997 {
		for _, zeroed := range []bool{false, true} {
			copied := killedCopy(t, fs)
			change(t, copied, log, func(b []byte) []byte {
				if zeroed {
					clear(b[cut:])
					return b
				}
				return b[:cut]
			})
			n, logged, err := reopen(t, copied)
			if err != nil || logged != "" || n > last {
				t.Fatalf("cut at %d of %d: %d values, %v, %s", cut, len(whole), n, err, logged)
			}
			if zeroed {
				last = n
			}
		}
	}
}

func killedCopy(t *testing.T, fs vfs.FS) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	if _, err := vfs.Clone(fs, to, "state", "state"); err != nil {
		t.Fatal(err)
	}
	return unlocked{to}
}

// Damage in the middle of the log is named, with what to do, and what is before it is there.
func TestDamagedLogIsNamed(t *testing.T) {
	fs := killed(t, 40, 1500, false)
	log := newest(t, fs, ".log")
	for at := 700; at < 55_000; at += 4999 {
		copied := killedCopy(t, fs)
		change(t, copied, log, flip(at))
		n, logged, err := reopen(t, copied)
		if err != nil || n >= 40 || n < at/1600-1 {
			t.Errorf("damage at %d: %d values, %v", at, n, err)
		}
		if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, log) || !strings.Contains(logged, "restore") {
			t.Errorf("damage at %d: logged %q", at, logged)
		}
		if kept, err := readAll(copied, log+".damaged"); err != nil || len(kept) < 60_000 {
			t.Errorf("damage at %d: no copy is kept: %v", at, err)
		}
	}
}

// What can't be read at all ends the start with one line that names the file and tells what
// to do.
func TestDamageEndsTheStart(t *testing.T) {
	fs := killed(t, 300, 30_000, true) // several tables
	for _, c := range []struct {
		name, file string
		how        func([]byte) []byte
	}{
		{"manifest, a bit", "MANIFEST-", flip(30)},
		{"manifest, a bit of its last record", "MANIFEST-", func(b []byte) []byte { b[len(b)-3] ^= 1; return b }},
		{"manifest, empty", "MANIFEST-", func([]byte) []byte { return nil }},
		{"manifest, zeroes", "MANIFEST-", func(b []byte) []byte { clear(b); return b }},
		{"manifest, missing", "MANIFEST-", nil},
		{"marker, missing", "marker.manifest", nil},
		{"marker of the format, missing", "marker.format-version", nil},
		{"options, garbage", "OPTIONS-", func([]byte) []byte { return []byte("[Version\nnonsense") }},
		{"table, a bit", ".sst", flip(20_000)},
		{"table, its end", ".sst", func(b []byte) []byte { return b[:len(b)/2] }},
		{"table, missing", ".sst", nil},
	} {
		copied := killedCopy(t, fs)
		path := newest(t, copied, c.file)
		if c.how == nil {
			if err := copied.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else {
			change(t, copied, path, c.how)
		}
		n, logged, err := reopen(t, copied)
		if err == nil && n == 300 {
			continue // harmless
		}
		if !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %d values, %v, logged %s", c.name, n, err, logged)
			continue
		}
		t.Logf("%s: %v", c.name, err)
		part := strings.TrimPrefix(path, "state/")
		if strings.HasPrefix(c.file, "marker.") || c.file == "OPTIONS-" {
			part = c.file
		}
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %s is not named: %v", c.name, part, err)
		}
	}
}

func FuzzReadRecords(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x05\x00\x05\x01\x00\x00\x00hello"), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, number uint32) {
		if r := readRecords(b, number); r.end > len(b) || r.used > len(b) {
			t.Fatalf("%+v of %d bytes", r, len(b))
		}
	})
}
