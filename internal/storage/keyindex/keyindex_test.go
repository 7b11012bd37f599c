package keyindex

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func open(fs vfs.FS, slots, entries int) *Index {
	return Open(Options{Pool: segment.NewPool(fs, 10), Dir: "index", Slots: slots, Entries: entries})
}

func TestHash(t *testing.T) {
	for _, c := range []struct{ topic, key string }{{"orders", "k1"}, {"orders", "7F0000010A2B4C5D6E7F000000000001"},
		{"orders", ""}, {"orders", "größe"}, {"t", "键😀x"}, {"", "polygenelubricants"}} {
		if got, want := Hash(TopicHash(c.topic), c.key), positive(message.JavaHash(c.topic+"#"+c.key)); got != want {
			t.Errorf("hash of %s#%s: %d, want %d", c.topic, c.key, got, want)
		}
	}
	if positive(math.MinInt32) != 0 || positive(-5) != 5 {
		t.Error("sign")
	}
}

func TestGoldenFile(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats/keyindex.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```golden file\n")
	sample, _, _ := strings.Cut(rest, "```")
	want, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "").Replace(sample))
	if err != nil || len(want) == 0 {
		t.Fatal("no sample", err)
	}
	fs := vfs.NewMem()
	x := open(fs, 3, 4)
	x.Begin()
	for _, p := range []struct {
		hash         int32
		offset, time int64
	}{{7, 4096, 0x18bcfe56800}, {10, 8192, 0x18bcfe56800 + 2000}} {
		if err := x.Put(p.offset, p.time, []int32{p.hash}); err != nil {
			t.Fatal(err)
		}
	}
	x.End()
	if _, err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("index/" + x.mu.files[0].name)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(f)
	if !bytes.Equal(got, want) {
		t.Fatalf("file\n%x, want\n%x", got, want)
	}
}

// query gives the offsets of a hash.
func query(t *testing.T, x *Index, hash int32, begin, end int64) (got []int64) {
	t.Helper()
	for c := x.Find(hash, begin, end); !c.Over(); {
		left := 3 // a walk goes on where it was left
		offset, found, err := c.Next(&left)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			got = append(got, offset)
		}
	}
	return got
}

// Entries are found before and after a flush, over several files, newest first; replayed
// records add nothing; a file that lost its slots after a crash gets them back.
func TestPutQueryReload(t *testing.T) {
	fs := vfs.NewMem()
	x := open(fs, 10, 50)
	put := func(from, to int) {
		x.Begin()
		for i := from; i < to; i++ {
			if err := x.Put(int64(i)*100, 1_000_000+int64(i)*1000, []int32{int32(i % 7), int32(1000 + i)}); err != nil {
				t.Fatal(err)
			}
		}
		x.End()
	}
	check := func(n int) {
		t.Helper()
		for _, h := range []int{0, 3, 6} {
			got := query(t, x, int32(h), 0, math.MaxInt64/4)
			if len(got) != (n-h+6)/7 {
				t.Fatalf("hash %d: %d of %d", h, len(got), (n-h+6)/7)
			}
			for i := 1; i < len(got); i++ {
				if got[i] >= got[i-1] {
					t.Fatalf("not newest first: %v", got)
				}
			}
		}
		for i := range n {
			if got := query(t, x, int32(1000+i), 0, math.MaxInt64/4); len(got) != 1 || got[0] != int64(i)*100 {
				t.Fatalf("entry %d: %v", i, got)
			}
		}
		if got := query(t, x, 0, 1_000_000+21_000, 1_000_000+35_000); n > 42 && len(got) != 3 {
			t.Fatalf("by time: %v", got)
		}
		if err := x.Check(func(int32, int64) {}); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 60)
	check(60)
	infos, err := x.Flush()
	if err != nil {
		t.Fatal(err)
	}
	check(60)
	put(55, 100)
	check(100)
	// As a crash leaves it: entries and slots of what came later, the header of the flush.
	for _, f := range x.mu.files {
		if f.fresh {
			continue
		}
		if err := f.writeEntries(); err != nil {
			t.Fatal(err)
		}
		if err := f.writeSlots(); err != nil {
			t.Fatal(err)
		}
	}
	for _, damage := range []string{"", "slots"} {
		t.Run(fmt.Sprint("damage ", damage), func(t *testing.T) {
			x = open(fs, 10, 50)
			last, removed, err := x.Load(infos, 0, false)
			if err != nil || len(removed) > 0 || last != 5900 {
				t.Fatalf("loaded up to %d, removed %v: %v", last, removed, err)
			}
			if damage != "" {
				f := x.mu.files[len(x.mu.files)-1]
				if err := f.rebuildSlots(); err != nil {
					t.Fatal(err)
				}
			}
			check(60)
			put(0, 100)
			check(100)
		})
	}
	if err := x.RemoveBefore(5000); err != nil {
		t.Fatal(err)
	}
	if got := query(t, x, 1000, 0, math.MaxInt64/4); len(got) != 0 {
		t.Fatalf("a removed file answers %v", got)
	}
}
