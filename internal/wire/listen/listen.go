// Package listen is one listener for both protocols: it looks at the first bytes of a
// connection (PROXY header, TLS, HTTP/2 preface, Remoting frame) and hands it on.
//
// Invariants: a connection that says nothing is cut after a deadline; undecided bytes
// are never lost. Neighbours: node builds it; transport and grpc-go serve what it gives.
package listen
