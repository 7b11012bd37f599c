package brokerrpc

import (
	"strconv"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryConsumeQueue(r *transport.Request) {
	var h remoting.QueryConsumeQueueRequest
	if !s.read(r, &h) {
		return
	}
	got, err := s.b.Admin.ConsumeQueue(h.Topic, h.QueueID.Value, h.Index, h.Count)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	answer := remoting.QueryConsumeQueueBody{MinQueueIndex: got.Min, MaxQueueIndex: got.Max}
	if h.ConsumerGroup != "" {
		if sub, ok := s.b.Clients.Subscription(h.ConsumerGroup, h.Topic); ok {
			answer.SubscriptionData, answer.FilterData = subscriptionData(sub), "null"
		} else {
			answer.FilterData = h.ConsumerGroup + "@" + h.Topic + " is not online!"
		}
	}
	for _, e := range got.Entries {
		answer.QueueData = append(answer.QueueData, remoting.ConsumeQueueData{PhysicOffset: e.PhysicalOffset, PhysicSize: e.Size, TagsCode: e.TagsCode})
	}
	remark := ""
	if len(got.Entries) == 0 {
		remark = "Index " + strconv.FormatInt(h.Index, 10) + " of " + itoa(h.QueueID.Value) + "@" + h.Topic + " is not exist!"
	}
	r.Responder().Reply(remoting.ResSuccess, remark, nil, remoting.Marshal(&answer))
}
