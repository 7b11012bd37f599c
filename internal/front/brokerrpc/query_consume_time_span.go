package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryConsumeTimeSpan(r *transport.Request) {
	var h remoting.QueryConsumeTimeSpanRequest
	if !s.read(r, &h) {
		return
	}
	spans, err := s.b.Admin.ConsumeTimeSpans(h.Group, h.Topic)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	var answer remoting.QueryConsumeTimeSpanBody
	for _, p := range spans {
		answer.ConsumeTimeSpanSet = append(answer.ConsumeTimeSpanSet, remoting.QueueTimeSpan{MessageQueue: s.queue(h.Topic, p.QueueID),
			MinTimestamp: p.Begin, MaxTimestamp: p.End, ConsumeTimestamp: p.Consumed, DelayTime: p.Delay})
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
