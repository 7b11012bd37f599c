package message

import "testing"

// The vectors are those that Guava's own tests use, so that a message group goes to the
// same queue from every proxy.
func TestConsistentHash(t *testing.T) {
	for key, want := range []int{0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83} {
		if got := consistentHash(int64(key), 100); got != want {
			t.Errorf("%d of 100: %d, want %d", key, got, want)
		}
	}
	for _, c := range []struct {
		key  int64
		n    int
		want int
	}{
		{10863919174838991, 11, 6}, {2016238256797177309, 11, 3}, {1673758223894951030, 11, 5},
		{2, 100001, 80343}, {2201, 100001, 22152}, {2202, 100001, 15018},
	} {
		if got := consistentHash(c.key, c.n); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.key, c.n, got, c.want)
		}
	}
}

func TestConsistentHashMovesFewKeys(t *testing.T) {
	for n := 1; n < 16; n++ {
		for key := int64(-500); key < 500; key++ {
			before, after := consistentHash(key, n), consistentHash(key, n+1)
			if before < 0 || before >= n {
				t.Fatalf("%d of %d: %d", key, n, before)
			}
			if after != before && after != n {
				t.Fatalf("key %d moves from %d to %d when queue %d comes", key, before, after, n)
			}
		}
	}
}
