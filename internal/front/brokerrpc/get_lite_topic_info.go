package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getLiteTopicInfo(r *transport.Request) {
	var h remoting.GetLiteTopicInfoRequest
	if !s.read(r, &h) {
		return
	}
	if _, err := s.b.Lite.Parent(h.ParentTopic); err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	queue := names.Lite(h.ParentTopic, h.LiteTopic)
	b := remoting.LiteTopicInfo{ParentTopic: h.ParentTopic, LiteTopic: h.LiteTopic, ShardingToBroker: true}
	if end := s.b.Store.MaxOffset(queue, 0); end > 0 {
		b.TopicOffset = remoting.TopicOffset{MinOffset: s.b.Store.MinOffset(queue, 0), MaxOffset: end, LastUpdateTimestamp: s.b.Store.StoreTimeAt(queue, 0, end-1)}
	}
	for _, c := range s.b.Lite.Subscribers(h.ParentTopic, h.LiteTopic) {
		b.Subscriber = append(b.Subscriber, remoting.ClientGroup(c))
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&b))
}
