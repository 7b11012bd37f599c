package timer

import (
	"context"
	"runtime"
	"time"
)

// Very many messages that are due together are no reason to let everybody else wait: what is
// written between two others' messages is a window, and after each full one the log is left to
// the others for a breath. The later the messages are, the larger the windows become.
const (
	wheelWindow = 256 // messages, at most
	windowLeast = 64
	windowBytes = 256 << 10 // of more than one message, in time
	bytesMost   = 4 << 20   // and late
	// What is taken for some windows.
	takeMost  = 512
	takeBytes = 1 << 20
	// After so many copies that were made or appended, and places that were read from the
	// database, others may go first.
	copyPiece   = 16
	appendPiece = 32
	loadPiece   = 128
	// loadOfNear is which part of what is kept in memory is loaded at once: a second of a steady
	// flow, and no more than what others can wait for.
	loadOfNear = 16

	breath = 500 * time.Microsecond // and half of that more for each further windowLeast messages
	// patience is how late, in milliseconds, messages may be for each doubling of the window.
	patience = 1500
)

// windowOf is how many messages, of how many bytes, go at once when they are so many
// milliseconds late.
func windowOf(late int64) (n, bytes int) {
	n, bytes = windowLeast, windowBytes
	for ; bytes < bytesMost && late > patience; late -= patience {
		n, bytes = min(2*n, wheelWindow), 2*bytes
	}
	return n, bytes
}

// breathe leaves the log to others, after a window of n messages.
func breathe(ctx context.Context, n int) {
	nap(ctx, breath*time.Duration(1+max(n/windowLeast, 1))/2)
}

// giveWay lets whoever waits for a processor go first, of this process and of others: without it a
// thread that was woken behind this one may wait for a millisecond, though another processor is idle.
func giveWay() {
	runtime.Gosched()
	yield()
}

// A steady flow of messages is delivered in rounds: each costs a write, and each consumer a
// waking and an answer, however many it is for. Where fewer than roundLeast come in longestRound, which
// is 400 in a second, each is delivered in its millisecond, and so is a burst after a pause.
const (
	longestRound = 40 * time.Millisecond
	roundLeast   = 16
	roundFull    = 128 // rounds of more are shorter
)

// roundOf is how far apart rounds begin when so many messages are due in the longest one.
func roundOf(n int) time.Duration {
	if n < roundLeast {
		return 0
	}
	return longestRound * roundFull / time.Duration(max(n, roundFull))
}

// flow is how many messages were delivered of late.
type flow struct {
	began  time.Time // of the span that is counted now
	n      int
	steady bool // as many came lately as rounds are for
}

// add counts those of a round, in spans of at least a longest round. A flow is steady when a
// whole span had enough; while it is, each round alone shows whether it goes on.
func (f *flow) add(n int, now time.Time) {
	if n == 0 {
		return
	}
	if age := now.Sub(f.began); age >= longestRound {
		whole := f.n >= roundLeast && age <= 4*longestRound
		f.steady = whole || f.steady && n >= roundLeast && age <= 4*longestRound
		f.began, f.n = now, 0
	}
	f.n += n
}

// sleep ends early with ctx.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
