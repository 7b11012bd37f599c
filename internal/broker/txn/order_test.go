package txn

import (
	"math/rand/v2"
	"testing"
)

// What is restored in any order, as after a Keep, leaves the lowest first; what comes then is
// added behind it.
func TestOrderIsRestored(t *testing.T) {
	const n = 100_000 // one step for each pair of them would take half a minute
	var (
		o    order
		list []*entry
	)
	for _, at := range rand.Perm(n) {
		list = append(list, &entry{first: int64(at), at: int64(at)})
	}
	o.restore(list)
	o.add(&entry{first: n, at: n})
	for want := range int64(n + 1) {
		if at, ok := o.first(); !ok || at != want {
			t.Fatalf("the first is %d, %v, want %d", at, ok, want)
		}
		o.list[o.head].gone = true
	}
	if at, ok := o.first(); ok {
		t.Errorf("%d is left", at)
	}
}
