package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getBrokerLiteInfo(r *transport.Request) {
	c := s.b.Lite.Counts()
	lights := int32(s.b.Store.Lights())
	_, busy := s.b.Pop.LiteWindows()
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.BrokerLiteInfo{StoreType: "default",
		MaxLmqNum: s.b.StoreConfig.Get().MaxLmqConsumeQueueNum, CurrentLmqNum: lights, CqTableSize: lights,
		LiteSubscriptionCount: int32(c.Subscriptions), OrderInfoCount: int32(busy), OffsetTableSize: int32(s.b.Offsets.Len()), EventMapSize: int32(c.Clients), TopicMeta: c.TTLs, GroupMeta: c.Groups}))
}
