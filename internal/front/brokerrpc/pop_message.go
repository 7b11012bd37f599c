package brokerrpc

import (
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) popMessage(r *transport.Request) {
	var h remoting.PopMessageRequest
	if err := r.Decode(&h); err != nil {
		s.refusePop(r.Responder(), err)
		return
	}
	expr, err := s.popFilter(h.ConsumerGroup, h.Topic, h.ExpType, h.Exp)
	if err != nil {
		// What is wrong with the names counts before what is wrong with the expression.
		if first := s.b.Pop.Admits(pop.Request{Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueID, Max: int(h.MaxMsgNums)}); first != nil {
			err = first
		}
		s.refusePop(r.Responder(), err)
		return
	}
	from := channelOf(r.Conn)
	q := pop.Request{Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueID, Max: int(h.MaxMsgNums), Invisible: h.InvisibleTime,
		PollTime: suspension(h.PollTime), InitMode: pop.InitMode(h.InitMode), Filter: expr, Order: h.Order, AttemptID: h.AttemptID, Holder: from.holder, Peer: &from.peer}
	responder := r.Responder()
	s.b.Pop.Pop(q, func(res pop.Result, err error) { s.answerPop(responder, res, err) })
}

// popFilter compiles the expression of a pop, which is the group's subscription too: a
// proxy's clients have no heartbeat here. No expression takes everything. Of a topic or a
// group that is not there nothing is remembered: it costs a peer nothing to invent names.
func (s *Server) popFilter(group, topic, kind, text string) (*filter.Expression, error) {
	if text == "" {
		return nil, nil
	}
	expr, err := s.b.Pull.CompileAny(kind, text)
	if err != nil {
		return nil, err
	}
	_, known := s.b.Topics.Get(topic)
	if known {
		_, err := s.b.Groups.GetOrCreate(group)
		known = err == nil
	}
	if known {
		s.b.Clients.Passing(group, clients.Subscription{Topic: topic, Expression: text, Kind: kind, Tags: expr.Tags(), Codes: expr.CodeSet(), Version: time.Now().UnixMilli()})
	}
	return expr, nil
}

// popCodes is the response code of each outcome of a pop.
var popCodes = map[pop.Status]int32{
	pop.Found:          remoting.ResSuccess,
	pop.PollingTimeout: remoting.ResPollingTimeout,
	pop.PollingFull:    remoting.ResPollingFull,
	pop.Throttled:      remoting.ResPollingFull, // clients wait a while before they ask again
}

func (s *Server) answerPop(r transport.Responder, res pop.Result, err error) {
	if err != nil {
		s.refusePop(r, err)
		return
	}
	h := remoting.PopMessageResponse{PopTime: res.PopTime, InvisibleTime: res.Invisible, ReviveQid: res.ReviveQueue(), RestNum: res.RestNum}
	if res.Status != pop.Found {
		remark := "NO_MESSAGE_IN_QUEUE"
		if res.Status == pop.Throttled {
			remark = res.Reason
		}
		r.Reply(popCodes[res.Status], remark, &h, nil)
		res.Release()
		return
	}
	list := pieces.Get().(*[][]byte)
	var starts, offsets, counts []byte
	var numbers [pop.MaxMessages]int64
	for i := range res.Batches {
		b := &res.Batches[i]
		key := receipt.Queue{RetryFlag: b.RetryFlag, QueueID: b.QueueID}
		of := numbers[:0]
		for j := range b.Records {
			*list = append(*list, b.Records[j].Bytes)
			of = append(of, b.Records[j].QueueOffset)
		}
		starts = receipt.AppendStartOffset(starts, key, b.StartOffset)
		offsets = receipt.AppendOffsets(offsets, key, of)
		if res.Order {
			counts = appendOrderCounts(counts, key, b)
		}
	}
	h.StartOffsetInfo, h.MsgOffsetInfo, h.OrderCountInfo = text(starts), text(offsets), text(counts)
	r.ReplyRecords(remoting.ResSuccess, "FOUND", &h, *list, res.Release)
	clear(*list)
	*list = (*list)[:0]
	pieces.Put(list)
}

// appendOrderCounts tells how often the messages of a queue in order were delivered
// before, and for old clients the least of it.
func appendOrderCounts(dst []byte, key receipt.Queue, b *pop.Batch) []byte {
	least := int32(-1)
	for i := range b.Records {
		n := int32(0)
		if i < len(b.Attempts) {
			n = b.Attempts[i]
		}
		if n > 0 {
			dst = receipt.AppendOrderCountOf(dst, key, b.Records[i].QueueOffset, n)
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return receipt.AppendOrderCount(dst, key, max(least, 0))
}

func (s *Server) refusePop(r transport.Responder, err error) {
	code, remark := s.translate(err)
	r.Reply(code, remark, &remoting.PopMessageResponse{}, nil)
}
