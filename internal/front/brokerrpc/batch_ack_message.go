package brokerrpc

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) batchAckMessage(r *transport.Request) {
	var b remoting.BatchAckBody
	if !s.readBody(r, &b) {
		return
	}
	responder := r.Responder()
	entries := make([]pop.BatchAck, 0, len(b.Acks))
	for i := range b.Acks {
		a := &b.Acks[i]
		flag, err := retryFlag(a.Retry)
		if err != nil {
			s.refuse(responder, err)
			return
		}
		entries = append(entries, pop.BatchAck{Group: a.ConsumerGroup, Topic: receipt.RealTopic(flag, a.Topic, a.ConsumerGroup), QueueID: a.QueueID,
			StartOffset: a.StartOffset, PopTime: a.PopTime, Invisible: a.InvisibleTime, Bits: a.Bits})
	}
	if len(entries) == 0 {
		responder.Reply(remoting.ResNoMessage, "the batch is empty", nil, nil)
		return
	}
	s.b.Pop.AckBits(entries, func(acked int, err error) {
		if err != nil && acked > 0 {
			err = fmt.Errorf("%d messages are acknowledged, others are not: %w", acked, err)
		}
		s.done(responder, err)
	})
}

func retryFlag(text string) (byte, error) {
	switch text {
	case "", "0":
		return receipt.FlagNormal, nil
	case "1":
		return receipt.FlagRetryV1, nil
	case "2":
		return receipt.FlagRetryV2, nil
	}
	return 0, fmt.Errorf("%w: the field r of a batch is %.16q, want 0, 1 or 2", receipt.ErrIllegal, text)
}
