package sock

import (
	"testing"
	"time"
)

// TestBufferFollowsUse walks a buffer through frames of all sizes.
func TestBufferFollowsUse(t *testing.T) {
	var f Buffer
	// take brings a frame of size in reads as long as the buffer has room and takes it out.
	take := func(size int, pause time.Duration) {
		for got := 0; got < size; {
			p := f.Room(size)
			if len(p) == 0 {
				t.Fatalf("no room after %d of %d", got, size)
			}
			n := min(len(p), size-got)
			f.Filled(n, pause)
			got += n
			pause = 0
		}
		if f.Len() != size {
			t.Fatalf("%d bytes of %d", f.Len(), size)
		}
		f.Skip(size)
	}
	is := func(when string, low, high int) {
		t.Helper()
		if len(f.b) < low || len(f.b) > high {
			t.Errorf("%s: %d bytes, not %d to %d", when, len(f.b), low, high)
		}
	}
	take(100, 0)
	is("first", firstRead, firstRead)
	take(3000, 0)
	is("a little more", 3000, 8<<10)
	for range 20 {
		take(60<<10, 0)
	}
	is("busy", 60<<10, fullRead)
	take(5<<20, 0)
	is("in a large frame", 5<<20, 8<<20)
	f.Room(0)
	is("after it", fullRead, fullRead)
	take(16<<20+4, 0)
	is("in the largest frame", 16<<20+4, 32<<20)
	take(300, time.Second)
	is("a second later", fullRead, fullRead)
	take(300, time.Minute)
	is("a minute later", firstRead, firstRead)
}
