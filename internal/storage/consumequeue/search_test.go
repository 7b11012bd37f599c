package consumequeue

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage/segment"
)

// One damaged entry, wherever it is and whatever it says, hides no other from readers: the first
// that counts is found, but for the damaged one itself where it is that or lies just before it.
func TestOneDamagedEntryHidesNoOther(t *testing.T) {
	const entries, size = 100, 10
	for _, first := range []int64{0, 1, 2, 37, 98, 99} {
		for at := range int64(entries) {
			for _, says := range []int64{-1 << 62, 0, entries * size * 2} {
				s := Open(Options{Pool: segment.NewPool(vfs.NewMem(), 4), Dir: "q", FileEntries: entries})
				q := s.Make("t", 0)
				for i := range int64(entries) {
					e := Entry{Physical: i * size, Size: size}
					if i == at {
						e.Physical = says
					}
					if err := q.Append(i, e); err != nil {
						t.Fatal(err)
					}
				}
				got := q.Min(first * size)
				if got != first && (at != first || got != first+1) && (at < first-2 || at >= first || got != at) {
					t.Errorf("first is %d, entry %d says %d: found %d", first, at, says, got)
				}
			}
		}
	}
}

// A piece of a file that was wiped out hides no entry from readers, wherever it is.
func TestWipedEntriesHideNoOther(t *testing.T) {
	const entries, size = 100, 10
	for _, first := range []int64{0, 1, 2, 37, 98, 99} {
		for at := range int64(entries) {
			for _, n := range []int64{1, 2, 3, 20} {
				s := Open(Options{Pool: segment.NewPool(vfs.NewMem(), 4), Dir: "q", FileEntries: entries})
				q := s.Make("t", 0)
				for i := range int64(entries) {
					e := Entry{Physical: i * size, Size: size}
					if i >= at && i < at+n {
						e = Entry{}
					}
					if err := q.Append(i, e); err != nil {
						t.Fatal(err)
					}
				}
				got, want := q.Min(first*size), first
				if first > at && first <= at+n && at+n < entries || first > at && at+n >= entries {
					want = at // any of these may be the first
				}
				if got < want || got > first {
					t.Errorf("first is %d, %d entries from %d on are wiped out: found %d", first, n, at, got)
				}
			}
		}
	}
}
