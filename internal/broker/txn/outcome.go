package txn

import "fmt"

// Outcome is what became of a half message, or of one place that it was in.
type Outcome byte

// The outcomes. Their numbers are stored.
const (
	Unknown    Outcome = iota // there was no half message here, as far as is known
	Undecided                 // it is open
	Committed                 // its copy is in its topic
	RolledBack                // it will not be
	GivenUp                   // nobody decided; it is in TRANS_CHECK_MAX_TIME_TOPIC
	Moved                     // a half message with an earlier name was written again here
	Elsewhere                 // another server has decided it; which way is not known
)

// String is the outcome in the words of a refusal.
func (o Outcome) String() string {
	switch o {
	case Undecided:
		return "open"
	case Committed:
		return "committed"
	case RolledBack:
		return "rolled back"
	case GivenUp:
		return "given up after its last check"
	case Moved:
		return "written again elsewhere"
	case Elsewhere:
		return "decided by another server"
	}
	return "unknown"
}

// pageSize is how many half messages one page of outcomes has, each in half a byte.
const pageSize = 1024

// page is the outcomes of consecutive places of the half queue. It is in memory while one
// of them is open or on its way, or while it has changed.
type page struct {
	bits  [pageSize / 2]byte
	dirty bool
	held  int // open or flying
}

func (p *page) get(i int64) Outcome {
	return Outcome(p.bits[i/2] >> (i % 2 * 4) & 15)
}

func (p *page) set(i int64, o Outcome) {
	shift := i % 2 * 4
	p.bits[i/2] = p.bits[i/2]&^(15<<shift) | byte(o)<<shift
	p.dirty = true
}

// outcomes is what became of every half message that is still in the log: small enough to be
// kept for as long as somebody may come with a decision, 512 bytes for a thousand.
type outcomes struct {
	pages     map[int64]*page
	low, high int64 // numbers of the first and the last stored page
}

// pageLocked returns a page that is in memory or was never stored; nil when it has to be read.
func (t *Txn) pageLocked(n int64) *page {
	p := t.mu.outcomes.pages[n]
	if p == nil && (n > t.mu.outcomes.high || n < t.mu.outcomes.low) {
		p = new(page)
		t.mu.outcomes.pages[n] = p
	}
	return p
}

// resident brings the page of a place into memory. A state database that can't be read leaves
// it empty: what it said is taken for unknown, and said so once.
func (t *Txn) resident(offset int64) {
	n := offset / pageSize
	t.mu.Lock()
	p := t.pageLocked(n)
	t.mu.Unlock()
	if p != nil {
		return
	}
	p, err := t.readPage(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.mu.failed == nil {
		t.mu.failed = fmt.Errorf("read what became of transactions: %w", err)
		t.o.Log.Error("what became of transactions can't be read", "err", err)
	}
	if t.mu.outcomes.pages[n] == nil {
		t.mu.outcomes.pages[n] = p
	}
}

// lockPage is mu.Lock with the page of a place in memory.
func (t *Txn) lockPage(offset int64) *page {
	for {
		t.mu.Lock()
		if p := t.pageLocked(offset / pageSize); p != nil {
			return p
		}
		t.mu.Unlock()
		t.resident(offset)
	}
}
