// Package round lets the goroutine that reads requests also do what they cause.
//
// A lone request is cheapest when one goroutine sees it through: each loop that has to be
// woken for it, the log's writer, the committer of the state, a worker of POP, costs more
// than what it then does. So whoever reads requests opens a round, and at its end settles
// what they have caused: itself where that is little, by waking the loop where it is more.
// Work that others submit while a round is open is settled with it.
//
// Invariants: whoever leaves work unannounced has seen a round open, and a round that ends
// looks for work after it has ended, so none is left lying; a round is short: what waits
// for long within one pauses it.
//
// Neighbours: transport, h2 and the timers' loop open rounds; broker settles them; storage, state and pop
// hold back while one is open.
package round

import "sync/atomic"

// Rounds counts the rounds that are open. A nil one never has any.
type Rounds struct {
	open  atomic.Int32
	wakes []func()
}

// Wake adds a function that wakes a loop for work that may have been held back. It must be
// called before the first round.
func (r *Rounds) Wake(f func()) {
	if r != nil {
		r.wakes = append(r.wakes, f)
	}
}

// Begin opens a round.
func (r *Rounds) Begin() { r.open.Add(1) }

// End closes a round; the caller then settles.
func (r *Rounds) End() { r.open.Add(-1) }

// Open reports whether a round is open, so that work need not be announced.
func (r *Rounds) Open() bool { return r != nil && r.open.Load() > 0 }

// Pause ends the caller's round for as long as it waits for something, and has the loops do
// what it may have held back.
func (r *Rounds) Pause() {
	if r == nil {
		return
	}
	r.open.Add(-1)
	for _, wake := range r.wakes {
		wake()
	}
}

// Resume ends a pause.
func (r *Rounds) Resume() {
	if r != nil {
		r.open.Add(1)
	}
}
