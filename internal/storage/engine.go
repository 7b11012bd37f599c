// Package storage is the store: append, read, offsets, dispatch, retention and check of
// log, queues and key index.
//
// Invariants: readers see a message only after it was dispatched; Done is called once
// for every append, in log order; recovery cuts what is torn and rebuilds what is
// behind. Neighbours: publish appends, pull and pop read, broker opens it.
package storage
