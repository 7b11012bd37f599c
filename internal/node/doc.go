// Package node turns options into running servers: it takes the data folder, opens the
// listeners, puts name server, broker and proxy behind all of them, starts the loops in
// order and stops them in the reverse order.
//
// Invariants: one process has one node per data folder, held by a file lock that
// Apache's broker respects too; the ready file stands only while every listener serves;
// whatever a failed Start has opened is closed again; Stop loses nothing that was
// acknowledged.
//
// Neighbours: cli, server and bolidetest start it; it builds namesrv, broker, proxy and
// the fronts, which never see it.
package node
