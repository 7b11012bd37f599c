package brokerrpc

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// endTransaction takes a producer's decision. Clients send it without waiting for the answer;
// who waits is told also that "unknown" was heard, which changes nothing.
func (s *Server) endTransaction(r *transport.Request) {
	var h remoting.EndTransactionRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	d := txn.Decision{QueueOffset: h.TranStateTableOffset, LogOffset: h.CommitLogOffset, Group: h.ProducerGroup, Held: true}
	switch h.CommitOrRollback {
	case 0:
		s.done(responder, nil)
		return
	case message.SysTransactionCommit:
		d.Commit = true
	case message.SysTransactionRollback:
	default:
		s.done(responder, fmt.Errorf("%w: commitOrRollback is %d, want 0 (unknown), %d (commit) or %d (rollback)", txn.ErrIllegal,
			h.CommitOrRollback, message.SysTransactionCommit, message.SysTransactionRollback))
		return
	}
	s.b.Txn.End(d, func(err error) { s.done(responder, err) })
}
