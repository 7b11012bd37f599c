// Package names builds and takes apart the names that carry meaning: retry topics (v1
// and v2), dead-letter topics, system topics and groups, and checks names for legality.
//
// Invariants: pure functions; no state. Neighbours: everybody above.
package names
