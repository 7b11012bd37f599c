package qlock

import (
	"testing"
	"testing/synctest"
	"time"
)

// Locks are renewed as long as their holder asks, however long it takes, and lapse a minute
// after it has gone, not before (R037, R038).
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		q := []Queue{{"t", 0}, {"t", 1}}
		if got := l.Lock("g", "a", q, nil); len(got) != 2 {
			t.Fatalf("a got %v", got)
		}
		if got := l.Lock("g", "b", q, nil); len(got) != 0 {
			t.Fatalf("b got %v while a holds them", got)
		}
		if !l.HasLock("g") || !l.Holds("g", "a", q[0]) || l.Holds("g", "b", q[0]) {
			t.Fatal("who holds what is wrong")
		}
		l.Unlock("g", "b", q) // not the owner: no effect
		l.Unlock("g", "a", q[:1])
		if got := l.Lock("g", "b", q, nil); len(got) != 1 || got[0] != q[0] {
			t.Fatalf("b got %v, want the released queue", got)
		}
		time.Sleep(Lifetime - time.Second)
		l.Lock("g", "b", q[:1], nil) // renews
		time.Sleep(2 * time.Second)
		if l.Holds("g", "a", q[1]) {
			t.Fatal("a still holds what it has not renewed")
		}
		if got := l.Lock("g", "a", q, nil); len(got) != 1 || got[0] != q[1] {
			t.Fatalf("a got %v, want only what has expired", got)
		}
		time.Sleep(2 * Lifetime)
		if l.HasLock("g") {
			t.Fatal("an expired lock counts")
		}
		l.Lock("other", "x", nil, nil)
		if len(l.groups["g"]) != 0 {
			t.Fatal("expired locks are kept for ever")
		}
	})
}
