// Package remoting is the Remoting protocol: frames, both header encodings, every
// request code, header and body, as Apache RocketMQ 5.5.0 speaks it.
//
// Invariants: no reflection on the way of a message; no input panics; a header type is
// described once, by its Fields method, for reading and for writing.
//
// Neighbours: transport moves the frames; fronts and clients use the headers.
package remoting
