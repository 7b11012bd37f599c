package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// maxListed bounds the half messages that one answer lists.
const maxListed = 10_000

// bolideListTransactions tells which half messages are open, for bolide admin txn.
func (s *Server) bolideListTransactions(r *transport.Request) {
	var h remoting.ListTransactionsRequest
	if !s.read(r, &h) {
		return
	}
	list, total := s.b.Txn.List(h.Topic, h.Group, int(min(max(h.Limit, 0), maxListed)))
	answer := remoting.TransactionList{Now: s.b.Clock.NowMilli(), Total: int64(total)}
	for i := range list {
		u := &list[i]
		answer.Transactions = append(answer.Transactions, remoting.OpenTransaction{Checks: u.Checks, CommitLogOffset: u.LogOffset, Due: u.Due, Group: u.Group,
			MsgID: u.UniqueID, Size: u.Size, StoreTime: u.Stored, Topic: u.Topic, TranStateTableOffset: u.QueueOffset})
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
