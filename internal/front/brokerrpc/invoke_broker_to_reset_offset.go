package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// invokeBrokerToResetOffset sets a group's offsets by time, or one queue's by offset. It
// does so in either direction, whatever isForce says (R071), as Apache's brokers do.
func (s *Server) invokeBrokerToResetOffset(r *transport.Request) {
	var h remoting.InvokeBrokerToResetOffsetRequest
	if !s.read(r, &h) {
		return
	}
	reset := admin.Reset{Group: h.Group, Topic: h.Topic, QueueID: h.QueueID.Or(-1), Timestamp: h.Timestamp}
	if off := h.Offset.Or(-1); off >= 0 {
		reset.Offset, reset.HasOffset = off, true
	}
	offsets, err := s.b.Admin.ResetOffset(reset)
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	answer := remoting.ResetOffsetBody{OffsetTable: make(map[remoting.MessageQueue]int64, len(offsets))}
	for q, off := range offsets {
		answer.OffsetTable[s.queue(h.Topic, q)] = off
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}
