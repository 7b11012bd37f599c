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
	taken, owes := l.takeTurn(most)
	if !taken {
		return
	}
	b := l.writeTurn(most, owes)
	if b != nil {
		l.inline.Dispatch(b)
		l.recycle(b)
	}
}

// takeTurn takes the turn to write what is pending, where that is not more than most. Where the
// writer was asleep, owes says that the caller wakes it if there is more. The turn is also taken from
// a writer that was woken and has not begun: on a busy machine that may take long. Else takeTurn has the
// writer woken, unless somebody writes already. It has the turn before it looks: without it the writer might write and fall asleep behind the look,
// and nobody would wake it any more.
func (l *Log[N]) takeTurn(most int) (taken, owes bool) {
	if l.opt.Sync {
		return false, false // nothing is held back, and the writer gathers
	}
	free := l.turn.TryLock()
	l.mu.Lock()
	n := len(l.mu.pending.Entries)
	owes = l.wakeLocked()
	l.mu.Unlock()
	if free && n > 0 && n <= most {
		return true, owes
	}
	if free {
		l.turn.Unlock()
	}
	if owes {
		l.rouse()
	}
	return false, false
}

// writeTurn writes and completes what is pending, in the turn that the caller has taken, and
// returns what the caller has begun to dispatch. What is written later is dispatched later, though
// the turn is over.
func (l *Log[N]) writeTurn(most int, owes bool) (b *Batch[N]) {
	defer l.turn.Unlock()
	defer func() {
		if owes {
			l.sleeps()
		}
	}()
	t := &l.settled
	// It fails for good only where it syncs.
	if !l.take(t) || l.put(t) != nil || len(t.Entries) == 0 {
		return nil
	}
	b = t.Batch
	b.users.Store(2)
	b.complete()
	l.makeRoom()
	if len(b.Entries) > most || l.inline == nil || !l.inline.Begin(b) {
		l.queue(b)
		l.recycle(b)
		return nil
	}
	return b
}

// sleeps ends a turn that was taken from the sleeping writer, who is woken when there is more.
func (l *Log[N]) sleeps() {
	l.mu.Lock()
	more := len(l.mu.pending.Entries) > 0
	l.mu.asleep = !more
	l.mu.Unlock()
	if more {
		l.rouse()
	}
}

// rouse wakes the writer. When that was done before and it has not begun, it will find this too.
func (l *Log[N]) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
