// Package state is all small state of a broker in one Pebble database: typed keyspaces,
// atomic batches and the sync policy (docs/decisions).
//
// Invariants: batches commit in the order in which they were submitted; a commit that
// was answered survives a process crash, and under synchronous flush a power cut.
//
// Neighbours: topic, group, offset and pop own one keyspace or more each.
package state
