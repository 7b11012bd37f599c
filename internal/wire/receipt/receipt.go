// Package receipt is the text form of one delivery: POP_CK of Remoting, the receipt
// handle of gRPC, and the offset fields of a POP answer.
//
// Invariants: Parse∘Append is the identity; no input panics. Neighbours: pop names
// deliveries with it, fronts and clients carry it.
package receipt
