package pop

import "testing"

// What a window remembers of messages that moved on is bounded, even by a client whose
// receipts never end: each goes when its receipt ends, whatever came before it; and when
// there are too many, what is not known any more is answered as expired, never with OK.
func TestMovedIsBounded(t *testing.T) {
	const never = maxInvisible
	p := &Popper{}
	w := newWindow(windowKey{"g", "t", 0}, 1)
	w.rememberLocked(0, 1, never, 1)
	for i := int64(1); i <= 100_000; i++ {
		w.rememberLocked(i, i, i+10, i)
	}
	if n := len(w.mu.moved); n > 32 || len(w.mu.movedLog) > 32 {
		t.Errorf("%d messages are remembered behind one that never ends", n)
	}
	if w.mu.floor > 1 {
		t.Errorf("floor %d", w.mu.floor)
	}
	for i := int64(100_001); i <= 100_001+2*maxMoved; i++ {
		w.rememberLocked(i, i, never+i, i)
		w.mu.next = i + 1
		if len(w.mu.moved) > maxMoved || len(w.mu.movedLog) > maxMoved {
			t.Fatalf("%d messages are remembered", len(w.mu.movedLog))
		}
	}
	p.lastPop.Store(1 << 40)
	for i := int64(100_001); i < w.mu.next; i += 997 {
		if _, err := p.judgeLocked(w, Delivery{Offset: i, PopTime: i, Invisible: never}, i); err != ErrExpired {
			t.Fatalf("message %d is answered with %v", i, err)
		}
	}
}
