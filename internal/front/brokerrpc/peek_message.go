package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// peekMessage answers like a pop, but without what receipts are made of.
func (s *Server) peekMessage(r *transport.Request) {
	var h remoting.PeekMessageRequest
	if err := r.Decode(&h); err != nil {
		s.refusePop(r.Responder(), err)
		return
	}
	res, err := s.b.Pop.Peek(pop.Request{Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueID, Max: int(h.MaxMsgNums)})
	if err != nil {
		s.refusePop(r.Responder(), err)
		return
	}
	a := remoting.PopMessageResponse{RestNum: res.RestNum}
	if res.Status != pop.Found {
		r.Responder().Reply(remoting.ResPullNotFound, "NO_MESSAGE_IN_QUEUE", &a, nil)
		res.Release()
		return
	}
	list := pieces.Get().(*[][]byte)
	for i := range res.Batches {
		for j := range res.Batches[i].Records {
			*list = append(*list, res.Batches[i].Records[j].Bytes)
		}
	}
	r.Responder().ReplyRecords(remoting.ResSuccess, "FOUND", &a, *list, res.Release)
	clear(*list)
	*list = (*list)[:0]
	pieces.Put(list)
}
