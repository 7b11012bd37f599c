// Package metric is the registry of figures, fed only from events.
//
// Invariants: counting never blocks. Neighbours: node connects events to it.
package metric
