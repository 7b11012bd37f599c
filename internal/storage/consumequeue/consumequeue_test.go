package consumequeue

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../docs/formats/consumequeue.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```golden "+name+"\n")
	sample, _, _ := strings.Cut(rest, "```")
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "").Replace(sample))
	if err != nil || len(b) == 0 {
		t.Fatalf("sample %s: %v", name, err)
	}
	return b
}

func TestGoldenEntries(t *testing.T) {
	b := AppendEntry(nil, Entry{Physical: 4096, Size: 352, TagsCode: message.TagsCode("paid")})
	b = AppendEntry(b, Entry{Physical: 1 << 30, Size: 128})
	if want := golden(t, "entries"); !bytes.Equal(b, want) {
		t.Fatalf("%x, want %x", b, want)
	}
	if e := DecodeEntry(b); e.Physical != 4096 || e.Size != 352 || e.TagsCode != message.TagsCode("paid") {
		t.Fatalf("read %+v", e)
	}
	if f := AppendEntry(nil, Filler); !bytes.Equal(f, golden(t, "filler")) || !DecodeEntry(f).IsFiller() {
		t.Fatalf("filler %x", f)
	}
}

func open(fs vfs.FS) *Store {
	return Open(Options{Pool: segment.NewPool(fs, 4), Dir: "consumequeue", FileEntries: 10})
}

func entry(n int64) Entry { return Entry{Physical: n * 100, Size: 50, TagsCode: n} }

func none(string) int64                   { return 0 }
func unknown(topic string, _ int32) int64 { return 0 }

// Entries are read the same from memory, from files and from both; a queue that is loaded
// again ends where it is trusted to.
func TestAppendFlushLoad(t *testing.T) {
	fs := vfs.NewMem()
	s := open(fs)
	q := s.Make("orders", 3)
	check := func(q *Queue, n int64) {
		t.Helper()
		if q.Max() != n {
			t.Fatalf("%d entries, want %d", q.Max(), n)
		}
		for from := int64(0); from < n; from += 3 {
			got, err := q.Entries(nil, from, 15)
			if err != nil || int64(len(got)) != min(15, n-from) {
				t.Fatalf("%d entries from %d: %v", len(got), from, err)
			}
			for i, e := range got {
				if e != entry(from+int64(i)) {
					t.Fatalf("entry %d is %+v", from+int64(i), e)
				}
			}
		}
	}
	for n := range int64(47) {
		if err := q.Append(n, entry(n)); err != nil {
			t.Fatal(err)
		}
		if n%9 == 0 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		check(q, n+1)
	}
	for range 3 { // the second finds it idle and lets go of what is in memory
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if v := q.view(); len(v.tail) != 0 {
		t.Fatalf("an idle queue keeps %d bytes", len(v.tail))
	}
	check(q, 47)
	if err := q.Append(46, entry(46)); err != nil {
		t.Fatal("replay:", err)
	}
	var gap *Gap
	if err := q.Append(48, entry(48)); !errors.As(err, &gap) || gap.Max != 47 {
		t.Fatalf("gap: %v", err)
	}
	for _, trusted := range []int64{4700, 4600, 3050, 100, 0} {
		s := open(fs)
		damaged, err := s.Load(trusted, none, unknown)
		if err != nil || len(damaged) > 0 {
			t.Fatal(damaged, err)
		}
		check(s.Queue("orders", 3), (trusted+99)/100)
	}
	s = open(fs)
	if _, err := s.Load(2000, none, unknown); err != nil {
		t.Fatal(err)
	}
	q = s.Queue("orders", 3)
	if _, err := q.Cut(); err != nil {
		t.Fatal(err)
	}
	s = open(fs)
	if _, err := s.Load(1<<60, none, unknown); err != nil {
		t.Fatal(err)
	}
	check(s.Queue("orders", 3), 20) // what was cut does not come back
}

// A queue whose beginning is gone starts where its first record is.
func TestBeginInTheMiddle(t *testing.T) {
	fs := vfs.NewMem()
	s := open(fs)
	q := s.Make("orders", 0)
	for n := int64(25); n < 33; n++ {
		if err := q.Append(n, entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		if lowest := q.Min(0); lowest != 25 || q.Max() != 33 {
			t.Fatalf("round %d: from %d to %d", round, lowest, q.Max())
		}
		if lowest := q.Min(2810); lowest != 29 {
			t.Fatalf("round %d: first at or after 2810 is %d", round, lowest)
		}
		if e, ok, err := q.Entry(24); ok || err != nil {
			t.Fatalf("a filler is given out: %+v %v", e, err)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		s = open(fs)
		if _, err := s.Load(1<<60, none, unknown); err != nil {
			t.Fatal(err)
		}
		q = s.Queue("orders", 0)
	}
	q.Append(33, entry(33))
	if err := s.RemoveBefore(3100); err != nil {
		t.Fatal(err)
	}
	if q.First() != 30 || q.Min(3100) != 31 {
		t.Fatalf("after the deletion: stored from %d, first %d", q.First(), q.Min(3100))
	}
	if err := s.Delete("orders"); err != nil {
		t.Fatal(err)
	}
	if err := q.Append(34, entry(34)); err != nil || q.Max() != 0 || s.Queue("orders", 0) != nil {
		t.Fatalf("a deleted queue: %v, max %d", err, q.Max())
	}
}

// Whatever a topic is called, its end removes nothing outside of the store's folder, nor
// the folder itself.
func TestDeleteStaysInside(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("consumequeue/kept/0", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll("commitlog", 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(fs)
	for _, name := range []string{"", ".", "..", "../commitlog", "./kept", "x/../kept", "x/../../commitlog", `..\commitlog`, "/commitlog", "a\x00b"} {
		if err := s.Delete(name); !errors.Is(err, ErrName) {
			t.Errorf("delete %q: %v", name, err)
		}
	}
	for _, dir := range []string{"commitlog", "consumequeue/kept/0"} {
		if _, err := fs.Stat(dir); err != nil {
			t.Errorf("%s is gone: %v", dir, err)
		}
	}
}

// Between the entry and the note of its time a queue is not as old as the entry before.
func TestTimeOfTheLastEntryIsNeverOlder(t *testing.T) {
	q := open(vfs.NewMem()).Make("%LMQ%a", 0)
	if err := q.Append(0, entry(0)); err != nil {
		t.Fatal(err)
	}
	q.Stored(1, 1000)
	if end, at := q.Last(); end != 1 || at != 1000 {
		t.Fatalf("end %d at %d", end, at)
	}
	if err := q.Append(1, entry(1)); err != nil {
		t.Fatal(err)
	}
	if end, at := q.Last(); end != 2 || at != 0 {
		t.Errorf("end %d at %d, which is the time of the entry before", end, at)
	}
}
