package bench

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A body begins with the run's number, the message's number and the time it was sent, in
// nanoseconds of this process's monotonic clock; the rest is filler.
const minBody = 24

// ledger counts every message of a run.
type ledger struct {
	run    uint64
	total  int64
	filter sieve
	epoch  time.Time
	seen   []uint64 // one bit per message

	// moments are when the time of each message begins, after epoch, where that is not its send.
	moments []atomic.Int64

	next      atomic.Int64 // next number to send
	stored    atomic.Int64 // sends that were answered with success
	refused   atomic.Int64 // sends that were refused and repeated
	unique    atomic.Int64
	duplicate atomic.Int64
	foreign   atomic.Int64 // messages of no number of this run, or that its filter refuses
	handled   atomic.Int64 // messages whose handling, acknowledgement included, is done

	mu    sync.Mutex
	named []int64 // numbers of the first duplicates

	complete     chan struct{} // closed when all that pass the filter are handled
	completeOnce sync.Once
}

// sieve is which messages a run's filter lets through: one of oneIn in each queue; all of
// them when oneIn is 0.
type sieve struct{ oneIn, queues int64 }

// part is a property of the message with this number; those of part 0 pass the filter.
func (f sieve) part(number int64) int64 { return number / f.queues % f.oneIn }

func (f sieve) passes(number int64) bool { return f.oneIn == 0 || f.part(number) == 0 }

// passing is how many of the first total numbers pass.
func (f sieve) passing(total int64) int64 {
	if f.oneIn == 0 {
		return total
	}
	round := f.oneIn * f.queues
	return total/round*f.queues + min(total%round, f.queues)
}

func newLedger(total int) *ledger {
	return &ledger{
		run:      rand.Uint64(),
		total:    int64(total),
		epoch:    time.Now(),
		seen:     make([]uint64, (total+63)/64),
		complete: make(chan struct{}),
	}
}

// body fills b for the message with this number.
func (l *ledger) body(b []byte, number int64, sent time.Time) {
	binary.BigEndian.PutUint64(b, l.run)
	binary.BigEndian.PutUint64(b[8:], uint64(number))
	binary.BigEndian.PutUint64(b[16:], uint64(sent.Sub(l.epoch)))
}

// numberOf is the number in a body that received has found to be of its run.
func numberOf(body []byte) int64 { return int64(binary.BigEndian.Uint64(body[8:])) }

// received counts a delivery and returns when the message's time began. first is false for a
// duplicate or a message of another run.
func (l *ledger) received(body []byte) (moment time.Time, first bool) {
	if len(body) < minBody || binary.BigEndian.Uint64(body) != l.run {
		l.foreign.Add(1)
		return l.epoch, false
	}
	number := numberOf(body)
	if number < 0 || number >= l.total || !l.filter.passes(number) {
		l.foreign.Add(1)
		return l.epoch, false
	}
	moment = l.epoch.Add(time.Duration(binary.BigEndian.Uint64(body[16:])))
	if l.moments != nil {
		moment = l.epoch.Add(time.Duration(l.moments[number].Load()))
	}
	bit := uint64(1) << (number % 64)
	if atomic.OrUint64(&l.seen[number/64], bit)&bit != 0 {
		l.twice(number)
		return moment, false
	}
	l.unique.Add(1)
	return moment, true
}

// twice counts a delivery too many.
func (l *ledger) twice(number int64) {
	l.duplicate.Add(1)
	l.mu.Lock()
	if len(l.named) < 10 {
		l.named = append(l.named, number)
	}
	l.mu.Unlock()
}

// twin is a ledger for another delivery of the same messages.
func (l *ledger) twin() *ledger {
	t := newLedger(int(l.total))
	t.run, t.epoch, t.filter = l.run, l.epoch, l.filter
	return t
}

// rewind has every message handled once more.
func (l *ledger) rewind() {
	l.handled.Store(0)
	l.complete, l.completeOnce = make(chan struct{}), sync.Once{}
}

// done counts n messages as handled.
func (l *ledger) done(n int) {
	if l.handled.Add(int64(n)) >= l.filter.passing(l.total) {
		l.completeOnce.Do(func() { close(l.complete) })
	}
}

// missing returns how many messages were never seen, and the first of them.
func (l *ledger) missing() (n int64, first []int64) {
	n = l.filter.passing(l.total) - l.unique.Load()
	for i := int64(0); i < l.total && int64(len(first)) < min(n, 10); i++ {
		if l.filter.passes(i) && l.seen[i/64]&(1<<(i%64)) == 0 {
			first = append(first, i)
		}
	}
	return n, first
}
