package commitlog

import "testing"

// Sparse runs are read by blocks where that has paid of late, and tried now and then where it
// has not.
func TestCompany(t *testing.T) {
	var c company
	c.alone.Store(16 * quiteAlone)
	shared := func() (n int) {
		for range 10 * tryEvery {
			if c.sparsest() == sparsestShared {
				n++
			}
		}
		return n
	}
	if n := shared(); n != 10 {
		t.Errorf("alone: %d of %d runs by blocks, want every %dth", n, 10*tryEvery, tryEvery)
	}
	for range 12 {
		c.noted(32, 1) // somebody else had read nearly all of it
	}
	if n := shared(); n != 10*tryEvery {
		t.Errorf("in company: %d of %d runs by blocks", n, 10*tryEvery)
	}
	for range 12 {
		c.noted(32, 32)
	}
	if n := shared(); n != 10 {
		t.Errorf("alone again: %d of %d runs by blocks", n, 10*tryEvery)
	}
}
