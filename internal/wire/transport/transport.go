// Package transport moves Remoting frames over connections: one reader at a time for each, a
// writer when there is something to write, calls and one-way requests in both directions.
//
// Invariants: many frames per read, one write for many answers; a handler runs on its
// connection's reader and never blocks it; at most one goroutine writes to a connection
// at any time; a peer that does not read its answers first stops being read, and is cut
// when it takes nothing for Limits.Stall or its unsent bytes reach Limits.Unsent; every
// waiting call has a deadline; a released body is released exactly once, after its last
// byte was written or will never be.
//
// Neighbours: listen hands it connections, fronts serve its requests; proxy/remote,
// register, bench and client call through Client.
package transport

import (
	"errors"
	"log/slog"
	"time"

	"github.com/bolidemq/bolide/internal/wire/poll"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Errors of calls and connections.
var (
	ErrClosed       = errors.New("connection is closed")
	ErrShutdown     = errors.New("server is shutting down")
	ErrIdle         = errors.New("connection was idle too long")
	ErrStalled      = errors.New("peer does not read what is sent to it")
	ErrUnsent       = errors.New("too many bytes wait to be sent to the peer")
	ErrTooManyCalls = errors.New("too many calls wait on the connection")
	ErrTimeout      = errors.New("no answer in time")
	ErrFrameTooLong = errors.New("frame is longer than the protocol allows")
)

// Handler serves one request. It runs on the connection's reader, so it must not wait:
// what waits keeps the request's Responder and answers later. The request, its body and
// its Ref fields are valid until Handler returns.
type Handler func(*Request)

// Limits bound what one connection may hold. Zero values mean the defaults.
type Limits struct {
	Idle        time.Duration // neither read nor written for this long: closed; 120 s
	Stall       time.Duration // a megabyte that takes the peer longer to take: cut; 30 s
	UnsentPause int           // unsent bytes above which requests are no longer read; 4 MiB
	Unsent      int           // unsent bytes above which the connection is cut; 64 MiB
	Calls       int           // calls that wait for the peer's answer; 65,535
	CallTimeout time.Duration // for calls whose context has no deadline; 3 s
}

func (l Limits) withDefaults() Limits {
	if l.Idle == 0 {
		l.Idle = 120 * time.Second
	}
	if l.Stall == 0 {
		l.Stall = 30 * time.Second
	}
	if l.UnsentPause == 0 {
		l.UnsentPause = 4 << 20
	}
	if l.Unsent == 0 {
		l.Unsent = 64 << 20
	}
	if l.Calls == 0 {
		l.Calls = 65535
	}
	if l.CallTimeout == 0 {
		l.CallTimeout = 3 * time.Second
	}
	return l
}

// Options are what the connections of a Server or a Client share.
type Options struct {
	Handler Handler      // serves the peer's requests; nil refuses them all
	OnOpen  func(*Conn)  // before the first frame is read
	OnClose func(*Conn)  // after the last
	Round   Round        // nil: Request.InRound does nothing
	Poller  *poll.Poller // reads plain connections; nil: a goroutine for each
	Limits  Limits       // zero values are defaults
	Log     *slog.Logger // nil logs nothing
	Events  Events       // for metrics
}

// Round is told by readers when they begin to handle requests that want a round, and when
// they have handled all that they have read and are about to write the answers.
type Round interface {
	BeginRound()
	EndRound()
}

// Events tells what happens to connections; nil functions are not called.
type Events struct {
	Opened func(*Conn)
	Closed func(*Conn, error)
}

// refuse answers a request that no handler takes.
func refuse(r *Request) {
	r.Responder().Reply(remoting.ResRequestCodeNotSupported, " request type "+itoa(r.Code)+" not supported", nil, nil)
}
