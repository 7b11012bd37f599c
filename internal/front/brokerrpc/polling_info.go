package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) pollingInfo(r *transport.Request) {
	var h remoting.PollingInfoRequest
	if !s.read(r, &h) {
		return
	}
	if err := s.b.Pop.Admits(pop.Request{Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueID}); err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	n := s.b.LongPoll.WaitingFor(longpoll.Key{Topic: h.Topic, QueueID: max(h.QueueID, longpoll.AllQueues), Group: h.ConsumerGroup})
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.PollingInfoResponse{PollingNum: int32(n)}, nil)
}
