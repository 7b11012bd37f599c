package crash

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// ledger remembers what was sent, delivered and acknowledged, by the message's number.
type ledger struct {
	next atomic.Int64

	mu        sync.Mutex
	stored    map[int64]bool           // the producer got an OK
	delivered map[int64]receipt.Handle // the delivery with the highest pop time
	acked     map[int64]receipt.Handle // the delivery whose acknowledgement got an OK
	open      map[int64]bool           // an acknowledgement got no answer: done or not
}

func newLedger() *ledger {
	return &ledger{stored: map[int64]bool{}, delivered: map[int64]receipt.Handle{}, acked: map[int64]receipt.Handle{}, open: map[int64]bool{}}
}

func (l *ledger) counts() (stored, acked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.stored), len(l.acked)
}

func (l *ledger) wasStored(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored[n] = true
}

// wasDelivered checks a delivery against the acknowledgements with OK.
func (l *ledger) wasDelivered(t *testing.T, n int64, h receipt.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done, ok := l.acked[n]; ok {
		t.Errorf("message %d came again as %v after its acknowledgement as %v got an OK", n, h, done)
	}
	if before, ok := l.delivered[n]; !ok || h.PopTime > before.PopTime {
		l.delivered[n] = h
	}
}

// wasAcked checks an OK against later deliveries that other consumers got meanwhile.
func (l *ledger) wasAcked(t *testing.T, n int64, h receipt.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.delivered[n]; last.PopTime > h.PopTime {
		t.Errorf("message %d: an acknowledgement as %v got an OK after a delivery as %v", n, h, last)
	}
	l.acked[n] = h
}

func (l *ledger) mayBeAcked(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[n] = true
}

// checkStored compares the numbers in the topic with the sends that got an OK.
func (l *ledger) checkStored(t *testing.T, counts map[int64]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing, twice := 0, 0
	for n := range l.stored {
		if counts[n] == 0 {
			if missing++; missing <= 5 {
				t.Errorf("message %d got an OK and is not in the topic", n)
			}
		}
	}
	for n, c := range counts {
		if c > 1 {
			if twice++; twice <= 5 {
				t.Errorf("message %d was sent once and is in the topic %d times", n, c)
			}
		}
	}
	t.Logf("%d messages with OK, %d in the topic, %d missing, %d twice", len(l.stored), len(counts), missing, twice)
}

// checkConsumed holds that everything in the topic was acknowledged in the end, but for what
// may have been by an acknowledgement that got no answer.
func (l *ledger) checkConsumed(t *testing.T, counts map[int64]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := 0
	for n := range counts {
		if _, ok := l.acked[n]; !ok && !l.open[n] {
			if left++; left <= 5 {
				t.Errorf("message %d never came to be acknowledged", n)
			}
		}
	}
	t.Logf("%d acknowledged, %d acknowledgements without an answer, %d left", len(l.acked), len(l.open), left)
}
