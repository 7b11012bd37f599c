// Package namesrvrpc is the name server's Remoting requests: one file per request code,
// named like the code, and one table of all of them (requests.go).
//
// Invariants: a handler reads the header, does one thing in the table of routes, writes
// the answer; errors become codes and remarks in errors.go and nowhere else; a broker of
// this process is shown to each asker at the address at which that asker reached us.
//
// Neighbours: transport calls Handle for the requests that Serves says are ours, node
// calls Closed when a connection has ended; namesrv has the routes.
package namesrvrpc

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// Options is what the front needs. Table is required.
type Options struct {
	Table *namesrv.Table
	// Stay reports whether a client that came to this port of ours is told to stay on it:
	// the proxy's ports may be all that is open to it. nil: no port is such.
	Stay func(port uint16) bool
	Log  *slog.Logger
}

// Server answers a name server's requests.
type Server struct {
	table *namesrv.Table
	log   *slog.Logger
	stay  func(port uint16) bool
	serve map[int32]request
}

// New returns a server; it starts nothing.
func New(o Options) *Server {
	s := &Server{table: o.Table, log: o.Log, stay: o.Stay, serve: make(map[int32]request, len(requests))}
	if s.stay == nil {
		s.stay = func(uint16) bool { return false }
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, r := range requests {
		s.serve[r.code] = r
	}
	return s
}

// Serves tells whether a request code is one of the name server's.
func (s *Server) Serves(code int32) bool {
	_, ok := s.serve[code]
	return ok
}

// Handle answers one request.
func (s *Server) Handle(r *transport.Request) {
	to := r.Responder()
	line, ok := s.serve[r.Code]
	if !ok {
		to.Reply(remoting.ResRequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", r.Code), nil, nil)
		return
	}
	if line.local && !fromHere(r.Conn.RemoteAddr()) {
		to.Reply(remoting.ResNoPermission, "request "+line.name()+" is allowed from this machine only, over 127.0.0.1 or ::1, and came from "+r.Conn.RemoteAddr().String(), nil, nil)
		return
	}
	a, err := line.answer(s, r)
	if err != nil {
		code, remark := translate(err)
		if code == remoting.ResSystemError && !known(err) {
			s.log.Error("a name server request failed", "request", line.name(), "remote", r.Conn.RemoteAddr(), "err", err)
		}
		to.Reply(code, remark, a.header, nil)
		return
	}
	to.Reply(remoting.ResSuccess, "", a.header, a.body)
}

// Closed takes note that a connection has ended: what was registered on it is gone.
func (s *Server) Closed(c *transport.Conn) { s.table.CloseConn(c) }

// answer is what a handler has to say when nothing went wrong.
type answer struct {
	header remoting.Header
	body   []byte
}

func fromHere(a netip.AddrPort) bool { return a.Addr().Unmap().IsLoopback() }

// local is where the asker reached us; without a port where a broker's own is right.
func (s *Server) local(r *transport.Request) netip.AddrPort {
	at := r.Conn.LocalAddr()
	if !s.stay(at.Port()) {
		at = netip.AddrPortFrom(at.Addr(), 0)
	}
	return at
}

// addresses is a broker's addresses as the asker is shown them.
func addresses(b *namesrv.Broker, at netip.AddrPort) map[int64]string {
	out := make(map[int64]string, len(b.Addresses))
	for id, a := range b.Addresses {
		out[id] = a.At(at)
	}
	return out
}

func brokerData(b *namesrv.Broker, at netip.AddrPort) remoting.BrokerData {
	return remoting.BrokerData{BrokerAddrs: addresses(b, at), BrokerName: b.Name, Cluster: b.Cluster,
		EnableActingMaster: b.ActingMaster, ZoneName: b.Zone}
}

func topicList(topics []string) answer {
	return answer{body: remoting.Marshal(&remoting.TopicList{TopicList: topics})}
}
