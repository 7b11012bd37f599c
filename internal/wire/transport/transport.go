// Package transport moves Remoting frames over connections: a reader and a writer loop
// per connection, calls and one-way requests in both directions.
//
// Invariants: many frames per read, one write for many answers; a peer that does not
// read its answers is cut when its bound of unsent bytes is reached; every waiting call
// has a deadline. Neighbours: listen hands it connections, fronts serve its requests.
package transport
