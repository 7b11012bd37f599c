// Package consumequeue is the list of 20-byte entries of each topic and queue, which
// points into the commit log.
//
// Invariants: entries are written in log order by the dispatcher alone; no entry points
// past the end of the log after recovery. Neighbours: storage.
package consumequeue
