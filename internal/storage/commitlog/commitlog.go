// Package commitlog is the one log: records of all topics in the order of their arrival.
//
// Invariants: one writer; offsets have no gaps but end-of-file records; after a torn
// tail is cut, everything behind the cut is zero. Neighbours: storage.
package commitlog
