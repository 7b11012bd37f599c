// Package segment is a sequence of fixed-size files, each named by the offset of its
// first byte: the only code that knows their file names.
//
// Invariants: files are extended by a write at their last byte and zeroed, never cut;
// reads never pass the written end. Neighbours: commitlog and consumequeue.
package segment
