// Package filter compiles subscription expressions: tags now, SQL92 in its own file.
//
// Invariants: an Expression is immutable and safe for concurrent use; compiling is the
// only place that rejects. Neighbours: pull, pop and the fronts compile; storage asks
// the compiled expression while it reads.
package filter
