package exports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// table is a table whose text is one word in brackets.
type table struct {
	word   string
	taken  int
	writes int
}

func (t *table) file(name string) File {
	return File{
		Name: name,
		Export: func() ([]byte, error) {
			t.writes++
			return []byte("[" + t.word + "]"), nil
		},
		Import: func(text []byte) error {
			if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
				return errors.New("not in brackets")
			}
			t.word = string(text[1 : len(text)-1])
			t.taken++
			return nil
		},
	}
}

func put(t *testing.T, fs vfs.FS, path string, text []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, fs vfs.FS, path string) string {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		return ""
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func openState(t *testing.T, fs vfs.FS) *state.DB {
	t.Helper()
	db, err := state.Open(state.Options{FS: fs, Dir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// R093: whatever state the file is in, the broker starts, and with the right table.
func TestWhatAFileMeans(t *testing.T) {
	const ours, foreign = "[ours]", "[foreign]"
	half := func(s string) string { return s[:len(s)/2] }
	zeroes := func(s string) string { return string(make([]byte, len(s))) }
	for _, c := range []struct {
		name      string
		fresh     bool // the state database knows nothing
		main, bak string
		want      string
		replaced  bool
	}{
		{"our own", false, ours, "[older]", "ours", false},
		{"our own of earlier", false, "[older]", "", "ours", false},
		{"missing", false, "", "", "ours", false},
		{"half", false, half(ours), "[older]", "ours", false},
		{"zero length with an old .bak", false, "\x00", "[older]", "ours", false},
		{"zero-filled", false, zeroes(ours), "[older]", "ours", false},
		{"foreign", false, foreign, "[older]", "foreign", true},
		{"half of a foreign one", false, half(foreign), "[older]", "ours", false},
		{"half of a foreign one and its .bak", false, half(foreign), "[foreign bak]", "foreign bak", true},
		{"first start on a foreign store", true, foreign, "", "foreign", true},
		{"first start, damaged", true, half(foreign), "[foreign bak]", "foreign bak", true},
		{"first start, missing but for the .bak", true, "", "[foreign bak]", "foreign bak", true},
		{"first start, both damaged", true, half(foreign), zeroes(foreign), "initial", false},
		{"first start, nothing", true, "", "", "initial", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			db := openState(t, fs)
			defer db.Close()
			tab := &table{word: "initial"}
			if !c.fresh {
				for _, w := range []string{"older", "ours"} {
					tab.word = w
					e, err := Open(Options{FS: fs, Dir: "config", State: db}, tab.file("t.json"))
					if err != nil {
						t.Fatal(err)
					}
					if err := e.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				if got := get(t, fs, "config/t.json.bak"); got != "[older]" {
					t.Fatalf(".bak is %q", got)
				}
			}
			_ = fs.MkdirAll("config", 0o755)
			for name, text := range map[string]string{"config/t.json": c.main, "config/t.json.bak": c.bak} {
				if text == "" {
					_ = fs.Remove(name)
				} else {
					if text == "\x00" {
						text = ""
					}
					put(t, fs, name, []byte(text))
				}
			}
			e, err := Open(Options{FS: fs, Dir: "config", State: db}, tab.file("t.json"))
			if err != nil {
				t.Fatal(err)
			}
			if tab.word != c.want || e.WasReplaced("t.json") != c.replaced {
				t.Fatalf("table %q, replaced %v", tab.word, e.Replaced())
			}
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := get(t, fs, "config/t.json"); got != "["+c.want+"]" {
				t.Fatalf("the file is %q afterwards", got)
			}
			// The next start finds its own file.
			if e, err = Open(Options{FS: fs, Dir: "config", State: db}, tab.file("t.json")); err != nil || len(e.Replaced()) != 0 {
				t.Fatal(e, err)
			}
		})
	}
}

// R093, crash cycles: the power is cut anywhere between two writes of a table that
// changes all the time; what the state database knows is what counts.
func TestPowerCuts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashableMem()
	word := 0
	for round := range 60 {
		db := openState(t, fs)
		tab := &table{word: fmt.Sprint(word)}
		e, err := Open(Options{FS: fs, Dir: "config", State: db}, tab.file("t.json"))
		if err != nil {
			t.Fatal(round, err)
		}
		if len(e.Replaced()) != 0 {
			t.Fatalf("round %d: our own file was taken for a foreign one", round)
		}
		var cut *vfs.MemFS
		cutAt := r.IntN(20)
		for i := range 20 {
			word++
			tab.word = fmt.Sprint(word)
			e.Changed("t.json")
			if err := e.Flush(); err != nil {
				t.Fatal(round, err)
			}
			if i == cutAt {
				cut = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
				break
			}
		}
		_ = db.Close()
		fs = cut
	}
}

func TestRunWritesAtMostOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		db := openState(t, fs)
		var word atomic.Value
		var writes atomic.Int32
		word.Store("x")
		file := File{Name: "t.json", Import: func([]byte) error { return nil }, Export: func() ([]byte, error) {
			writes.Add(1)
			return []byte("[" + word.Load().(string) + "]"), nil
		}}
		e, err := Open(Options{FS: fs, Dir: "config", State: db}, file)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		for i := range 100 {
			word.Store(fmt.Sprint(i))
			e.Changed("t.json")
			time.Sleep(100 * time.Millisecond)
		}
		if n := writes.Load(); n < 2 || n > 3 {
			t.Fatalf("%d writes in 10 s", n)
		}
		word.Store("last")
		e.Changed("t.json")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if got := get(t, fs, "config/t.json"); got != "[last]" {
			t.Fatalf("after a clean stop the file is %q", got)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A file that takes long to make is made less often, but once a minute.
func TestRunWritesLargeFilesLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openState(t, vfs.NewMem())
		writes := 0
		file := File{Name: "t.json", Import: func([]byte) error { return nil }, Export: func() ([]byte, error) {
			writes++
			time.Sleep(time.Second)
			return fmt.Append(nil, writes), nil
		}}
		e, err := Open(Options{FS: vfs.NewMem(), Dir: "config", State: db}, file)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		for range 600 {
			e.Changed("t.json")
			time.Sleep(time.Second)
		}
		cancel()
		<-done
		if writes < 9 || writes > 12 {
			t.Errorf("%d writes in 10 minutes", writes)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A file that takes long to make is no reason to make others less often, or to miss a change.
func TestLargeFilesHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		db := openState(t, fs)
		var version atomic.Int64
		file := func(name string, takes time.Duration) File {
			return File{Name: name, Export: func() ([]byte, error) {
				time.Sleep(takes)
				return fmt.Append(nil, version.Load()), nil
			}}
		}
		e, err := Open(Options{FS: fs, Dir: "config", State: db}, file("large.json", time.Second), file("small.json", 0))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		for range 60 {
			time.Sleep(7 * time.Second)
			version.Add(1)
			e.Changed("large.json")
			e.Changed("small.json")
			time.Sleep(3 * time.Second)
			if got := get(t, fs, "config/small.json"); got != fmt.Sprint(version.Load()) {
				t.Fatalf("the small file has version %q of %d", got, version.Load())
			}
		}
		time.Sleep(longest + 2*time.Second)
		if got := get(t, fs, "config/large.json"); got != fmt.Sprint(version.Load()) {
			t.Errorf("the large file has version %q of %d", got, version.Load())
		}
		cancel()
		<-done
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestUnreadableFolder(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	defer db.Close()
	tab := &table{word: "x"}
	f := tab.file("t.json")
	f.Export = func() ([]byte, error) { return nil, errors.New("no text") }
	e, err := Open(Options{FS: fs, Dir: "config", State: db}, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(); err == nil {
		t.Fatal("no error")
	}
	if !bytes.Equal([]byte(get(t, fs, "config/t.json")), nil) {
		t.Fatal("something was written")
	}
}

// A name that is no file's is never written, so Run does not wait for it.
func TestChangedIsNoFile(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	defer db.Close()
	e, err := Open(Options{FS: fs, Dir: "config", State: db}, (&table{word: "[x]"}).file("t.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	e.Changed("another.json")
	if pause, some := e.pause(); some {
		t.Errorf("it is looked at again in %v", pause)
	}
	e.Changed("t.json")
	if _, some := e.pause(); !some {
		t.Error("the file that has changed is not waited for")
	}
}
