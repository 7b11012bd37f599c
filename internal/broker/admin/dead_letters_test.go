package admin

import "testing"

// TestWithin counts the bits of any range as one by one.
func TestWithin(t *testing.T) {
	var c [chunkBytes]byte
	for i := range c {
		c[i] = byte(i*37 + 11)
	}
	const first = 1024
	for low := int64(first - 9); low < first+chunkBytes*8+9; low += 3 {
		for high := low; high < first+chunkBytes*8+9; high += 5 {
			want := int64(0)
			for at := max(low, first); at < min(high, first+chunkBytes*8); at++ {
				if c[(at-first)/8]&(1<<((at-first)%8)) != 0 {
					want++
				}
			}
			if got := within(&c, first, low, high); got != want {
				t.Fatalf("from %d to %d: %d, want %d", low, high, got, want)
			}
		}
	}
}
