package brokerrpc

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// resumeCheckHalfMessage has the producers asked again about a half message.
func (s *Server) resumeCheckHalfMessage(r *transport.Request) {
	var h remoting.ResumeCheckHalfMessageRequest
	if !s.read(r, &h) {
		return
	}
	responder := r.Responder()
	_, at, err := message.ParseOffsetID(h.MsgID)
	if err != nil {
		s.done(responder, fmt.Errorf("%w: msgId %.64q is not the offset id of a message: %w", txn.ErrNotFound, h.MsgID, err))
		return
	}
	s.b.Txn.Resume(at, func(err error) { s.done(responder, err) })
}
