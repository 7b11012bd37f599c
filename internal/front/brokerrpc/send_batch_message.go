package brokerrpc

import (
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) sendBatchMessage(r *transport.Request) {
	h := remoting.SendMessageRequest{V2: true}
	if err := r.Decode(&h); err != nil {
		s.refuseSend(r.Responder(), err)
		return
	}
	s.sendBatch(r, &h)
}

// maxBatch bounds the messages of a batch: a frame has room for 700,000 small ones, which
// are many times their size in memory, and whose ids fit in no answer's header.
const maxBatch = 1 << 16

// sendBatch serves a batch under any code: the header's batch flag says so too.
func (s *Server) sendBatch(r *transport.Request, h *remoting.SendMessageRequest) {
	responder := r.Responder()
	var ms []*message.Message
	err := message.DecodeBatch(r.Body, func(m *message.Message) error {
		if len(ms) == maxBatch {
			return fmt.Errorf("a batch has at most %d messages", maxBatch)
		}
		m2 := *m
		m2.StoreHost = s.b.StoreHost
		ms = append(ms, &m2)
		return nil
	})
	if err != nil {
		s.refuseSend(responder, fmt.Errorf("%w: %w", publish.ErrMessageIllegal, err))
		return
	}
	q := &publish.Request{Message: &message.Message{Topic: h.Topic, QueueID: h.QueueID, SysFlag: h.SysFlag, BornTimestamp: h.BornTimestamp,
		BornHost: r.Conn.RemoteAddr(), StoreHost: s.b.StoreHost, ReconsumeTimes: h.ReconsumeTimes}}
	fillRequest(q, h, r.Version)
	s.b.Publish.SendBatch(q, ms, func(placed []storage.Placed, err error) {
		if err != nil {
			s.refuseSend(responder, err)
			return
		}
		var ids []byte
		for i := range placed {
			if i > 0 {
				ids = append(ids, ',')
			}
			ids = message.AppendOffsetID(slices.Grow(ids, 33), s.b.StoreHost, placed[i].PhysicalOffset)
		}
		settings := s.b.Config.Get()
		responder.Reply(remoting.ResSuccess, "", &remoting.SendMessageResponse{MsgID: text(ids), QueueID: q.QueueID,
			QueueOffset: placed[0].QueueOffset, TransactionID: text(q.UniqKey), Region: settings.RegionID, TraceOn: traceOn(settings.TraceOn)}, nil)
	})
}
