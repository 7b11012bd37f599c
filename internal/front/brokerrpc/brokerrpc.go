// Package brokerrpc is a broker's Remoting requests: one file per request code, named
// like the code, and one table (requests.go).
//
// Invariants: a handler reads the header, calls one domain method and writes the answer;
// it holds no lock, starts no goroutine and logs nothing; every two-way request is
// answered exactly once; every code of the protocol has an answer (a test compares table,
// files and wire/remoting); errors become codes in errors.go and nowhere else.
//
// Neighbours: transport runs the handlers on its readers; broker is asked; node joins
// this table with the name server's, because every port answers every code.
package brokerrpc

import (
	"log/slog"
	"sync"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// Options is what a Server needs.
type Options struct {
	Broker *broker.Broker
	Log    *slog.Logger
}

// Server answers a broker's requests. It has no state but what the broker has.
type Server struct {
	b        *broker.Broker
	log      *slog.Logger
	table    map[int32]*request
	sendings sync.Pool // of *sending
}

// New returns a server for o.Broker.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{b: o.Broker, log: o.Log, table: make(map[int32]*request, len(requests))}
	s.sendings.New = s.newSending
	for i := range requests {
		s.table[requests[i].code] = &requests[i]
	}
	return s
}

// Handle serves any request: those of a broker, and a refusal for all others.
func (s *Server) Handle(r *transport.Request) {
	if q := s.table[r.Code]; q != nil {
		s.serve(q, r)
		return
	}
	Refuse(r)
}

// HandleVIP serves the requests of the port two below the broker's: all but those that
// wait for messages.
func (s *Server) HandleVIP(r *transport.Request) {
	if q := s.table[r.Code]; q != nil && !q.waits {
		s.serve(q, r)
		return
	}
	Refuse(r)
}

// serve runs a request's handler if its sender may ask for it.
func (s *Server) serve(q *request, r *transport.Request) {
	if q.local && !r.Conn.RemoteAddr().Addr().Unmap().IsLoopback() {
		r.Responder().Reply(remoting.ResNoPermission, remoting.CodeName(r.Code)+" is allowed from this machine only, over 127.0.0.1 or ::1, and came from "+r.Conn.RemoteAddr().String(), nil, nil)
		return
	}
	if q.quick {
		r.InRound()
	} else {
		r.OutOfRound()
	}
	q.serve(s, r)
}

// Closed ends what a connection left behind. It is transport.Options.OnClose.
func (s *Server) Closed(c *transport.Conn) {
	if ch, ok := c.Value(channelKey{}).(*channel); ok {
		s.b.LongPoll.Release(&ch.peer)
		s.b.Clients.CloseChannel(ch)
	}
}

// Refuse answers a request that nobody here serves: with the reason, where the protocol's
// table has one.
func Refuse(r *transport.Request) {
	remark := " request type " + itoa(r.Code) + " not supported"
	if c, ok := remoting.LookupCode(r.Code); ok && c.State == remoting.Refused {
		remark += ": " + c.Why
	}
	r.Responder().Reply(remoting.ResRequestCodeNotSupported, remark, nil, nil)
}

// read decodes the header of r, or answers what is wrong with it.
func (s *Server) read(r *transport.Request, h remoting.Header) bool {
	if err := r.Decode(h); err != nil {
		s.refuse(r.Responder(), err)
		return false
	}
	return true
}

// readBody decodes the JSON body of r, or answers what is wrong with it.
func (s *Server) readBody(r *transport.Request, b remoting.Body) bool {
	if err := remoting.Unmarshal(r.Body, b); err != nil {
		s.refuse(r.Responder(), err)
		return false
	}
	return true
}

// refuse answers with what errors.go makes of err.
func (s *Server) refuse(r transport.Responder, err error) {
	code, remark := s.translate(err)
	r.Reply(code, remark, nil, nil)
}

// done answers an outcome without data.
func (s *Server) done(r transport.Responder, err error) {
	if err != nil {
		s.refuse(r, err)
		return
	}
	r.Reply(remoting.ResSuccess, "", nil, nil)
}

// announced answers the change of topics when the name servers know them.
func (s *Server) announced(r transport.Responder, topics []string, err error) {
	if err != nil {
		s.refuse(r, err)
		return
	}
	s.b.Announce(topics, func() { s.done(r, nil) })
}
