package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/reply"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) sendReplyMessage(r *transport.Request) { s.reply(r, false) }

// reply serves both forms of a reply.
func (s *Server) reply(r *transport.Request, v2 bool) {
	responder := r.Responder()
	h := remoting.SendMessageRequest{V2: v2}
	if err := r.Decode(&h); err != nil {
		s.refuseSend(responder, err)
		return
	}
	from := r.Conn.RemoteAddr()
	q := &reply.Request{
		Publish: publish.Request{Message: &message.Message{Topic: h.Topic, QueueID: h.QueueID, Flag: h.Flag, SysFlag: h.SysFlag,
			BornTimestamp: h.BornTimestamp, BornHost: from, StoreHost: s.b.StoreHost, ReconsumeTimes: h.ReconsumeTimes,
			Properties: message.Properties(h.Properties), Body: r.Body}},
		Push: remoting.PushReplyMessageRequest{ProducerGroup: h.ProducerGroup, Topic: h.Topic, DefaultTopic: h.DefaultTopic,
			DefaultTopicQueueNums: h.DefaultTopicQueueNums, SysFlag: h.SysFlag, BornTimestamp: h.BornTimestamp, Flag: h.Flag,
			ReconsumeTimes: h.ReconsumeTimes, UnitMode: h.UnitMode, BornHost: from.String(), StoreHost: s.b.StoreHost.String()},
	}
	fillRequest(&q.Publish, &h, r.Version)
	s.b.Reply.Reply(q, func(at storage.Placed, stored bool, err error) {
		if err != nil {
			s.refuseSend(responder, err)
			return
		}
		settings := s.b.Config.Get()
		a := remoting.SendMessageResponse{MsgID: "0", QueueID: q.Publish.QueueID, Region: settings.RegionID, TraceOn: traceOn(settings.TraceOn)}
		if stored {
			a.MsgID, a.QueueOffset = message.OffsetID(s.b.StoreHost, at.PhysicalOffset), at.QueueOffset
		}
		responder.Reply(remoting.ResSuccess, "", &a, nil)
	})
}
