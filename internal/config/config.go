// Package config is the option structs of all parts with their defaults and Apache's
// property names.
//
// Invariants: plain values, no behaviour but validation. Neighbours: everybody above.
package config
