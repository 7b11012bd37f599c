package brokerrpc

import (
	"errors"

	"github.com/bolidemq/bolide/internal/storage"
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
	responder := r.Responder()
	q := storage.KeyQuery{Topic: h.Topic, Key: h.Key, Max: most, Begin: h.BeginTimestamp, End: h.EndTimestamp, Gone: r.Conn.Closed}
	s.b.Store.FindKey(q, func(records []storage.Record, err error) {
		switch {
		case len(records) > 0 && (err == nil || errors.Is(err, storage.ErrCrowdedHash)):
			found(responder, records)
		case err != nil:
			s.refuse(responder, err)
		default:
			responder.Reply(remoting.ResQueryNotFound, "can not find message, maybe time range not correct", &remoting.QueryMessageResponse{}, nil)
		}
	})
}

// found answers with records, the newest first.
func found(r transport.Responder, records []storage.Record) {
	bodies := make([][]byte, len(records))
	for i := range records {
		bodies[i] = records[i].Bytes
	}
	newest, _ := message.PeekHeader(records[0].Bytes)
	r.ReplyRecords(remoting.ResSuccess, "", &remoting.QueryMessageResponse{
		IndexLastUpdateTimestamp: newest.StoreTimestamp, IndexLastUpdatePhyoffset: records[0].PhysicalOffset}, bodies, nil)
}
