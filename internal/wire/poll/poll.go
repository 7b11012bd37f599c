// Package poll reads connections without a goroutine for each.
//
// A goroutine that waits for its connection is cheap to keep and dear to wake: for every
// lone request the runtime wakes one thread to run it, another to take over the watch, and
// its monitor, which costs more than serving the request. A Poller watches all connections
// of a server itself. One goroutine at a time, the leader, waits for the kernel, and serves
// what it hears of on the spot; when there is more to do than one request, or serving one
// takes long, another takes the lead, up to one goroutine for each connection.
//
// Invariants: a connection is served by one goroutine at a time, in the order of its bytes;
// while a connection is served, for however long, others are: somebody else leads after
// takeOver at the latest; a descriptor is closed when nobody uses it any more, so its number
// can't mean another connection to anyone; all goroutines end with Run.
//
// Neighbours: transport and h2 hand their plain connections over; node runs one for all of
// them. Where there is no epoll, or one processor only, nothing is handed over and a
// connection is read by a goroutine of its own.
package poll

import "errors"

// ErrAgain is what Read returns when there is nothing to read for now.
var ErrAgain = errors.New("nothing to read yet")

// Through has the connection read until it ends: begin comes first, then read whenever there
// may be something, which returns ErrAgain when there is nothing for now, and at last finish
// with what else read has returned.
func (c *Conn) Through(begin func(), read func() error, finish func(error)) {
	begun := false
	c.Serve(func() bool {
		if !begun {
			begun = true
			begin()
		}
		err := read()
		if err == ErrAgain {
			return true
		}
		finish(err)
		return false
	})
}
