package brokerrpc

import (
	"strconv"

	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) popLiteMessage(r *transport.Request) {
	var h remoting.PopLiteMessageRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	s.b.Lite.Receive(lite.Request{ClientID: h.ClientID, Group: h.ConsumerGroup, Topic: h.Topic, Max: int(h.MaxMsgNum), Invisible: h.InvisibleTime,
		PollTime: suspension(h.PollTime), AttemptID: h.AttemptID, Peer: &channelOf(r.Conn).peer, OneTopic: true},
		func(res pop.Result, err error) { s.answerPopLite(responder, res, err) })
}

// answerPopLite says how often each message was delivered before, in their order; where they
// are their own properties say.
func (s *Server) answerPopLite(r transport.Responder, res pop.Result, err error) {
	if err != nil {
		s.refuse(r, err)
		return
	}
	h := remoting.PopLiteMessageResponse{PopTime: res.PopTime, InvisibleTime: res.Invisible, ReviveQid: res.ReviveQueue()}
	if res.Status != pop.Found {
		r.Reply(popCodes[res.Status], "NO_MESSAGE_IN_QUEUE", &h, nil)
		res.Release()
		return
	}
	list := pieces.Get().(*[][]byte)
	var counts []byte
	for i := range res.Batches {
		b := &res.Batches[i]
		for k := range b.Records {
			*list = append(*list, b.Records[k].Bytes)
			if len(counts) > 0 {
				counts = append(counts, ';')
			}
			counts = strconv.AppendInt(counts, int64(b.Attempts[k]), 10)
		}
	}
	h.OrderCountInfo = text(counts)
	r.ReplyRecords(remoting.ResSuccess, "FOUND", &h, *list, res.Release)
	clear(*list)
	*list = (*list)[:0]
	pieces.Put(list)
}
