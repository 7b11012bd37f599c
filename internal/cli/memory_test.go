package cli

import "testing"

// The garbage that may come together is as much as is in use up to 32 MiB, and a quarter of
// what is in use where that is more.
func TestPercentFor(t *testing.T) {
	for inUse, want := range map[uint64]int{0: 100, 10 << 20: 100, 32 << 20: 100, 33 << 20: 95, 64 << 20: 50, 128 << 20: 25, 8 << 30: 25} {
		if got := percentFor(inUse); got != want {
			t.Errorf("%d MiB in use: %d %%, want %d", inUse>>20, got, want)
		}
	}
}

// Memory goes back once after a burst, when half a minute was quiet.
func TestQuiet(t *testing.T) {
	m := newMemory()
	total := uint64(0)
	look := func(n int, each uint64) (at []int) {
		for i := range n {
			total += each
			if m.quiet(total) {
				at = append(at, i)
			}
		}
		return at
	}
	if at := look(100, 1<<20); at != nil {
		t.Errorf("under load memory went back at %d", at)
	}
	if at := look(100, 1<<10); len(at) != 1 || at[0] < quietLooks/2 || at[0] > quietLooks {
		t.Errorf("after a burst memory went back at %d", at)
	}
	if at := look(1000, 1<<10); at != nil {
		t.Errorf("without another burst memory went back at %d", at)
	}
	look(10, 4<<20)
	if at := look(100, 0); len(at) != 1 {
		t.Errorf("after the next burst memory went back at %d", at)
	}
}
