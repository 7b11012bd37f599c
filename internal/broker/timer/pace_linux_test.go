package timer

import (
	"context"
	"testing"
	"time"
)

// A nap is no shorter than asked for, and not a whole millisecond where less was.
func TestNaps(t *testing.T) {
	const asked = 300 * time.Microsecond
	shortest := time.Hour
	for range 200 {
		began := time.Now()
		nap(context.Background(), asked)
		shortest = min(shortest, time.Since(began))
	}
	if shortest < asked || shortest > 900*time.Microsecond {
		t.Errorf("the shortest of 200 naps of %v took %v", asked, shortest)
	}
}
