package commitlog

// holds reports whether what is appended may wait for the end of a round. A synchronous log
// has its own way of doing much at once.
func (l *Log[N]) holds() bool { return !l.opt.Sync && l.opt.Rounds.Open() }

// Settle writes what a round that has ended may have held back: on the caller's goroutine
// when it is little, which must hold no lock that a completion or the dispatch needs.
func (l *Log[N]) Settle() {
	if l.opt.Sync {
		return // nothing is held back, and the writer gathers
	}
	l.mu.Lock()
	n := len(l.mu.pending.Entries)
	wake := l.wakeLocked()
	l.mu.Unlock()
	if !wake {
		return
	}
	// The writer is asleep and nobody else wakes it now.
	if n > maxInline || !l.turn.TryLock() {
		l.wake <- struct{}{}
		return
	}
	if l.settleOnce() {
		l.wake <- struct{}{}
	}
}

// settleOnce writes what is pending, in the turn that the caller has taken, and reports
// whether the writer has to be woken for more.
func (l *Log[N]) settleOnce() (more bool) {
	defer l.turn.Unlock()
	if l.take(&l.settled) {
		_ = l.write(&l.settled) // fails for good only where it syncs
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	more = len(l.mu.pending.Entries) > 0
	l.mu.asleep = !more
	return more
}
