// Package keyindex is the hash index from message keys to log offsets, in Apache's file
// format.
//
// Invariants: written by the dispatcher alone; rebuilt from its entries and from the log
// where it is behind or damaged. Neighbours: storage.
package keyindex
