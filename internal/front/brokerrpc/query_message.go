package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) queryMessage(r *transport.Request) {
	var h remoting.QueryMessageRequest
	if !s.read(r, &h) {
		return
	}
	most := int(h.MaxNum)
	if r.Ext.Is("_UNIQUE_KEY_QUERY", "true") {
		most = int(s.b.StoreConfig.Get().DefaultQueryMaxNum)
	}
	records, err := s.b.Store.QueryKey(h.Topic, h.Key, most, h.BeginTimestamp, h.EndTimestamp)
	switch {
	case err != nil:
		s.refuse(r.Responder(), err)
		return
	case len(records) == 0:
		r.Responder().Reply(remoting.ResQueryNotFound, "can not find message, maybe time range not correct", &remoting.QueryMessageResponse{}, nil)
		return
	}
	bodies := make([][]byte, len(records))
	for i := range records {
		bodies[i] = records[i].Bytes
	}
	newest, _ := message.PeekHeader(records[0].Bytes)
	r.Responder().ReplyRecords(remoting.ResSuccess, "", &remoting.QueryMessageResponse{
		IndexLastUpdateTimestamp: newest.StoreTimestamp, IndexLastUpdatePhyoffset: records[0].PhysicalOffset}, bodies, nil)
}
