// Package load is producers and consumers that speak to a server by hand on the wire, and a
// ledger that remembers what the server answered and says what of it was not kept. The
// suites that kill servers share it.
//
// A message has a number and is sent once; what got no answer may be stored or not, and
// what of an acknowledgement got no answer may be done or not. The ledger judges only what
// an OK has promised.
package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Fate is what a consumer did with a delivery: the cause of the next one.
type Fate string

// The fates.
const (
	InHand     Fate = "its consumer had not come to it when its time was over"
	Left       Fate = "left alone until its invisible time was over"
	HandedBack Fate = "handed back"
	Extended   Fate = "extended, then left alone until its time was over"
	CutOff     Fate = "its consumer disconnected with it in hand"
	Refused    Fate = "its acknowledgement came late and was refused"

	// These are no consumer's doing.
	Unanswered Fate = "its acknowledgement got no answer"
	Killed     Fate = "the server was killed after the delivery"
	NoCause    Fate = "no cause: it was in hand"
)

// entry is what is known of one number.
type entry struct {
	stored     bool // the producer got an OK
	deliveries int
	last       receipt.Handle // the delivery with the highest pop time
	due        int64          // when it is over
	life       int64          // of the server that made it
	fate       Fate
	asked      int   // acknowledgements without an answer so far
	open       bool  // one never got an answer
	acked      int64 // when the first OK for an acknowledgement was here; 0 = never
	ackedAs    receipt.Handle
}

// Ledger remembers every message. Problem is told of each broken promise.
type Ledger struct {
	Problem func(format string, args ...any)
	next    atomic.Int64
	life    atomic.Int64 // kills of the server before

	mu       sync.Mutex
	messages map[int64]*entry
	counts   Counts
	causes   map[Fate]int
	change   time.Time // the last time that something new came
}

// Counts is what a run adds up.
type Counts struct {
	Sent, SentUnanswered              int
	Deliveries                        map[string]int // by protocol
	Delivered                         int            // messages
	Acked, AckRefused, AckUnanswered  int
	InTimeRefused                     int // refused though in time, and the server had not been killed
	StaleAcked                        int // OK for a delivery that a later one had replaced
	Extended, HandedBack, Disconnects int
	Killed, Stopped                   int
	Lost, LostUndelivered             int // the second are part of the first
	Redelivered, Duplicates           int
}

// NewLedger makes an empty one.
func NewLedger(problem func(format string, args ...any)) *Ledger {
	return &Ledger{Problem: problem, messages: map[int64]*entry{}, causes: map[Fate]int{}, counts: Counts{Deliveries: map[string]int{}}, change: time.Now()}
}

// Next is the number of the next message to send.
func (l *Ledger) Next() int64 { return l.next.Add(1) }

// Died notes that the server is gone, killed or stopped. It is called before the next one
// starts, so that whatever is asked from then on is asked of the next one.
func (l *Ledger) Died(killed bool) {
	l.life.Add(1)
	l.add(func(c *Counts) {
		if killed {
			c.Killed++
		} else {
			c.Stopped++
		}
	})
}

// Life counts the servers that have died. A consumer takes it before it asks for messages.
func (l *Ledger) Life() int64 { return l.life.Load() }

// Disconnect notes that a consumer went away.
func (l *Ledger) Disconnect() { l.add(func(c *Counts) { c.Disconnects++ }) }

func (l *Ledger) add(f func(*Counts)) {
	l.mu.Lock()
	f(&l.counts)
	l.mu.Unlock()
}

func (l *Ledger) of(n int64) *entry {
	m := l.messages[n]
	if m == nil {
		m = &entry{}
		l.messages[n] = m
	}
	return m
}

// Stored notes a producer's OK.
func (l *Ledger) Stored(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(n).stored = true
	l.counts.Sent++
}

// SentUnanswered notes that a send got no answer.
func (l *Ledger) SentUnanswered() { l.add(func(c *Counts) { c.SentUnanswered++ }) }

// Delivered checks a delivery against what came before it. life is that of the server that
// was asked.
func (l *Ledger) Delivered(n int64, h receipt.Handle, protocol string, life int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of(n)
	l.counts.Deliveries[protocol]++
	l.change = time.Now()
	if m.deliveries++; m.deliveries == 1 {
		l.counts.Delivered++
	} else {
		cause := m.cause(h, life)
		l.counts.Duplicates++
		l.causes[cause]++
		if cause == NoCause {
			l.Problem("message %d came again as %v while %v was in hand until %d (%s)", n, h, m.last, m.due, m.fate)
		}
	}
	if m.acked != 0 && h.PopTime > m.acked {
		l.counts.Redelivered++
		l.Problem("message %d came again as %v after its acknowledgement as %v got an OK at %d", n, h, m.ackedAs, m.acked)
	}
	if m.deliveries == 1 || h.PopTime > m.last.PopTime {
		m.last, m.due, m.life, m.fate = h, h.Due(), life, InHand
	}
}

// look is how long a request may take to look for messages. An answer has the pop time of
// its first message, and what lapses while it looks may be among the others.
const look = 50

// cause is why a delivery follows the last one. Answers may be looked at in another order
// than they were given.
func (m *entry) cause(h receipt.Handle, life int64) Fate {
	switch {
	case h.PopTime < m.last.PopTime && m.last.PopTime+look >= h.Due():
		return InHand
	case h.PopTime+look >= m.due && time.Now().UnixMilli() >= m.due:
		if m.open {
			return Unanswered
		}
		return m.fate
	case m.fate == HandedBack:
		return HandedBack
	case m.open:
		return Unanswered
	case life != m.life:
		return Killed
	}
	return NoCause
}

// Did notes what a consumer does with a delivery, before it does so.
func (l *Ledger) Did(n int64, h receipt.Handle, f Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.of(n); m.last.PopTime == h.PopTime {
		m.fate = f
	}
	if f == HandedBack {
		l.counts.HandedBack++
	}
}

// Changed notes that a delivery has a new name.
func (l *Ledger) Changed(n int64, old, h receipt.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of(n)
	if m.last.PopTime == old.PopTime {
		m.last, m.due = h, h.Due()
	}
	if m.fate != HandedBack {
		l.counts.Extended++
	}
}

// Asked notes that an acknowledgement is on its way.
func (l *Ledger) Asked(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(n).asked++
}

// Unanswered notes that an acknowledgement will get no answer, or one that does not tell.
func (l *Ledger) Unanswered(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of(n)
	m.asked--
	m.open = true
	l.counts.AckUnanswered++
}

// Answered notes the answer to an acknowledgement.
func (l *Ledger) Answered(n int64, h receipt.Handle, ok bool) {
	now, life := time.Now().UnixMilli(), l.life.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of(n)
	m.asked--
	l.change = time.Now()
	if !ok {
		l.counts.AckRefused++
		if m.last.PopTime == h.PopTime {
			m.fate = Refused
			if now < m.due && life == m.life && !m.open && m.acked == 0 {
				l.counts.InTimeRefused++
				l.Problem("the acknowledgement of message %d as %v was refused in time", n, h)
			}
		}
		return
	}
	if m.last.PopTime > h.PopTime+look && m.acked == 0 {
		l.counts.StaleAcked++
		l.Problem("message %d: an acknowledgement as %v got an OK after a delivery as %v", n, h, m.last)
	}
	if m.acked == 0 {
		m.acked, m.ackedAs = now, h
		l.counts.Acked++
	}
}

// Left counts the stored messages that nobody has acknowledged, and says since when nothing
// has happened.
func (l *Ledger) Left() (left int, quiet time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.messages {
		if (m.stored || m.deliveries > 0) && m.acked == 0 && !m.open {
			left++
		}
	}
	return left, time.Since(l.change)
}

// Settle ends the ledger: what is left now is lost. It returns what the run adds up to.
func (l *Ledger) Settle() (Counts, map[Fate]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(l.messages)) {
		if m := l.messages[n]; (m.stored || m.deliveries > 0) && m.acked == 0 && !m.open {
			l.counts.Lost++
			if m.deliveries == 0 {
				l.counts.LostUndelivered++
			}
			if l.counts.Lost <= 10 {
				l.Problem("message %d is lost: stored %v, delivered %d times, last as %v (%s)", n, m.stored, m.deliveries, m.last, m.fate)
			}
		}
	}
	return l.counts, maps.Clone(l.causes)
}

// CheckStored compares the numbers that a topic holds with the sends that got an OK.
func (l *Ledger) CheckStored(counts map[int64]int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing, twice, stored := 0, 0, 0
	for n, m := range l.messages {
		if m.stored {
			if stored++; counts[n] == 0 {
				if missing++; missing <= 5 {
					l.Problem("message %d got an OK and is not in the topic", n)
				}
			}
		}
	}
	for n, c := range counts {
		if c > 1 {
			if twice++; twice <= 5 {
				l.Problem("message %d was sent once and is in the topic %d times", n, c)
			}
		}
		l.of(n).stored = true // whether or not its producer was told
	}
	return fmt.Sprintf("%d messages with OK, %d in the topic, %d missing, %d twice", stored, len(counts), missing, twice)
}

// Causes sorts causes by their numbers.
func Causes(m map[Fate]int) []Fate {
	return slices.SortedFunc(maps.Keys(m), func(a, b Fate) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
