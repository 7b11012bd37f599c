package commitlog

import "math"

// holds reports whether what is appended may wait for the end of a round. A synchronous log
// has its own way of doing much at once.
func (l *Log[N]) holds() bool { return !l.opt.Sync && l.opt.Rounds.Open() }

// Settle writes what a round that has ended may have held back: on the caller's goroutine
// when it is little, which must hold no lock that a completion or the dispatch needs.
func (l *Log[N]) Settle() { l.settle(maxInline) }

// SettleAll is Settle for a loop, which has time: the caller writes and dispatches however much
// it is.
func (l *Log[N]) SettleAll() { l.settle(math.MaxInt) }

// settle writes and completes what is pending, if that is not more than most, and dispatches it
// while others may write again.
func (l *Log[N]) settle(most int) {
	if !l.takeTurn(most) {
		return
	}
	b, more := l.writeTurn(most)
	if more {
		l.wake <- struct{}{}
	}
	if b != nil {
		l.inline.Dispatch(b)
		l.recycle(b)
	}
}

// takeTurn takes the turn to write what is pending, where that is not more than most. Else it
// has the writer woken, unless somebody writes already.
func (l *Log[N]) takeTurn(most int) bool {
	if l.opt.Sync {
		return false // nothing is held back, and the writer gathers
	}
	l.mu.Lock()
	n := len(l.mu.pending.Entries)
	wake := l.wakeLocked()
	l.mu.Unlock()
	if !wake {
		return false
	}
	// The writer is asleep and nobody else wakes it now.
	if n > most || !l.turn.TryLock() {
		l.wake <- struct{}{}
		return false
	}
	return true
}

// writeTurn writes and completes what is pending, in the turn that the caller has taken, and
// returns what the caller has begun to dispatch and whether the writer has to be woken for
// more. What is written later is dispatched later, though the turn is over.
func (l *Log[N]) writeTurn(most int) (b *Batch[N], more bool) {
	defer l.turn.Unlock()
	defer func() { more = l.sleeps() }()
	t := &l.settled
	// It fails for good only where it syncs.
	if !l.take(t) || l.put(t) != nil || len(t.Entries) == 0 {
		return nil, false
	}
	b = t.Batch
	b.users.Store(2)
	b.complete()
	l.makeRoom()
	if len(b.Entries) > most || l.inline == nil || !l.inline.Begin(b) {
		l.queue(b)
		l.recycle(b)
		return nil, false
	}
	return b, false
}

// sleeps ends a turn that was taken from the sleeping writer, and reports whether it has to be
// woken.
func (l *Log[N]) sleeps() (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more = len(l.mu.pending.Entries) > 0
	l.mu.asleep = !more
	return more
}
