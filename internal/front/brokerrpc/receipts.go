package brokerrpc

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Refusals of requests that name a delivery.
var (
	errReceiptTopic  = errors.New("topic does not exist")
	errReceiptQueue  = errors.New("illegal queue id")
	errReceiptOffset = errors.New("no message at this offset")
	errReceiptLite   = errors.New("ack queue illegal")
)

// delivery reads the receipt of a request that acknowledges or changes a delivery. The
// request names topic, queue and offset itself; of its extraInfo the rest counts.
func (s *Server) delivery(topic string, queue int32, offset int64, extraInfo, lite string) (receipt.Handle, error) {
	h, err := receipt.Parse(extraInfo)
	if err != nil {
		return h, err
	}
	if lite != "" {
		if queue != 0 || h.ReviveQueue != names.OrderedReviveQueue {
			return h, fmt.Errorf("%w: queue %d, revive queue %d; a lite topic has queue 0, and revive queue %d", errReceiptLite, queue, h.ReviveQueue, names.OrderedReviveQueue)
		}
		h.Lite, topic = lite, names.Lite(topic, lite)
	}
	t, ok := s.b.Topics.Get(topic)
	switch {
	case !ok:
		return h, fmt.Errorf("%w: %s", errReceiptTopic, topic)
	case queue < 0 || queue >= t.ReadQueues:
		return h, fmt.Errorf("%w: queue %d of topic %s, which has %d", errReceiptQueue, queue, topic, t.ReadQueues)
	}
	if low, high := s.b.Store.MinOffset(topic, queue), s.b.Store.MaxOffset(topic, queue); offset < low || offset >= high {
		return h, fmt.Errorf("%w: offset is illegal, key:%s@%d, commit:%d, store:%d~%d", errReceiptOffset, topic, queue, offset, low, high)
	}
	h.QueueID, h.Offset = queue, offset
	return h, nil
}
