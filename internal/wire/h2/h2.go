// Package h2 serves gRPC over HTTP/2: one reader at a time for each connection, a writer when there is
// something to write, and calls that wait as entries of a map instead of goroutines.
//
// It exists because a long poll and a send cost little beside what a general server does
// for each call; docs/decisions/0042 has the measurements. It speaks the part of HTTP/2
// (RFC 9113) and HPACK (RFC 7541) that a gRPC server needs, with the decoder of
// golang.org/x/net for the headers, and takes the same service descriptions as grpc-go.
//
// Invariants: many frames per read, one write for many answers; a direct handler runs on
// its connection's reader and never blocks it; at most one goroutine writes to a
// connection at any time; what a peer sends is bounded by the windows it was granted and by
// the limits for headers, what waits for it by the windows it grants and by maxUnsent; a peer
// that does not take what is written is cut. A call ends exactly once: by its answer, its
// failure, the peer's reset or its connection's end.
//
// Neighbours: listen hands it connections; front/grpcv2 describes the service and handles
// the calls; node starts and stops it.
package h2

import (
	"errors"
	"log/slog"
	"time"

	"github.com/bolidemq/bolide/internal/wire/poll"
)

// Errors of connections.
var (
	ErrClosed   = errors.New("connection is closed")
	ErrShutdown = errors.New("server is shutting down")
	ErrStalled  = errors.New("peer does not read what is sent to it")
	ErrSilent   = errors.New("peer does not answer pings")
)

// Limits bound what one connection may hold. Zero values mean the defaults.
type Limits struct {
	Streams     int           // calls at a time; 10,000
	Headers     int           // bytes of the headers of a call, as HTTP/2 counts them; 64 KiB
	AllHeaders  int           // bytes of the headers of all its calls; 16 MiB
	Message     int           // bytes of a request, where Server.Direct says nothing else; 4 MiB
	Unsent      int           // unsent bytes above which nothing more is read; 4 MiB
	Ping        time.Duration // silence after which the peer is asked whether it is there; 30 s
	PingTimeout time.Duration // and how long it may take to answer; 20 s
	Stall       time.Duration // a write that takes the peer longer to take: cut; 30 s
}

func (l Limits) withDefaults() Limits {
	orInt := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	orTime := func(v *time.Duration, to time.Duration) {
		if *v == 0 {
			*v = to
		}
	}
	orInt(&l.Streams, 10_000)
	orInt(&l.Headers, 64<<10)
	orInt(&l.AllHeaders, 16<<20)
	orInt(&l.Message, 4<<20)
	orInt(&l.Unsent, 4<<20)
	orTime(&l.Ping, 30*time.Second)
	orTime(&l.PingTimeout, 20*time.Second)
	orTime(&l.Stall, 30*time.Second)
	return l
}

// Round is told by readers when they begin to serve direct calls, and when they have handled
// all that they have read and are about to write the answers.
type Round interface {
	BeginRound()
	EndRound()
}

// Options are what the connections of a Server share.
type Options struct {
	Limits Limits
	Round  Round
	Poller *poll.Poller // reads plain connections; nil: a goroutine for each
	Log    *slog.Logger // nil logs nothing
}

// What is granted to peers, and what is taken of what they grant.
const (
	streamWindow = 1 << 20  // of a request
	connWindow   = 4 << 20  // of all requests of a connection
	maxFrame     = 16 << 10 // HTTP/2's default, which is not changed
	// maxUnsent is how much of the answers lies ready for the socket; what a window would
	// allow beyond it waits with its call.
	maxUnsent = 1 << 20
	// maxPartial bounds the requests of all connections that are not complete yet. Above it
	// those are refused that have more than largePart; above twice as much, all.
	maxPartial = 256 << 20
	largePart  = 64 << 10
)
