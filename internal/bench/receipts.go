package bench

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// popped is what a pop's answer says about all its messages.
type popped struct {
	header remoting.PopMessageResponse
	starts map[receipt.Queue]int64
	broker string
}

func readPopped(a *remoting.Command, broker string) (p popped, err error) {
	p.broker = broker
	if err := a.Decode(&p.header); err != nil {
		return p, err
	}
	p.starts, err = receipt.ParseStartOffsets(p.header.StartOffsetInfo)
	return p, err
}

var (
	ownTopic   = []byte{receipt.FlagNormal}
	retryTopic = []byte{receipt.FlagRetryV1, receipt.FlagRetryV2}
)

// receipt makes the receipt of one of the messages as official clients do: a redelivery may
// carry its own, or its retry topic's name.
func (p *popped) receipt(m *message.Message) (receipt.Handle, error) {
	flags := ownTopic
	if m.ReconsumeTimes > 0 {
		if ready := m.Properties.Value(message.PropertyPopCheckpoint); ready != "" {
			h, err := receipt.Parse(ready)
			h.Broker = p.broker // the parsed one lies in the connection's buffer, which the next answer overwrites
			return h, err
		}
		if names.IsRetry(m.Topic) {
			flags = retryTopic
		}
	}
	for _, flag := range flags {
		if start, ok := p.starts[receipt.Queue{RetryFlag: flag, QueueID: m.QueueID}]; ok {
			return receipt.Handle{
				StartOffset: start, PopTime: p.header.PopTime, InvisibleTime: p.header.InvisibleTime, ReviveQueue: p.header.ReviveQid,
				RetryFlag: flag, Broker: p.broker, QueueID: m.QueueID, Offset: m.QueueOffset, LogOffset: receipt.NoLogOffset,
			}, nil
		}
	}
	return receipt.Handle{}, fmt.Errorf("queue %d of %s is not in the answer's start offsets %q", m.QueueID, m.Topic, p.header.StartOffsetInfo)
}

// ackBatch is the body of BATCH_ACK_MESSAGE: one entry per queue of each topic with a bit
// per message, counted from the batch's start offset.
func ackBatch(group, topic string, handles []receipt.Handle) []byte {
	body := remoting.BatchAckBody{BrokerName: handles[0].Broker}
	for _, h := range handles {
		retry := strconv.Itoa(int(h.RetryFlag))
		i := slices.IndexFunc(body.Acks, func(a remoting.BatchAck) bool {
			return a.QueueID == h.QueueID && a.Retry == retry && a.StartOffset == h.StartOffset
		})
		if i < 0 {
			i = len(body.Acks)
			body.Acks = append(body.Acks, remoting.BatchAck{
				ConsumerGroup: group, Topic: topic, Retry: retry, StartOffset: h.StartOffset, QueueID: h.QueueID,
				ReviveQueueID: h.ReviveQueue, PopTime: h.PopTime, InvisibleTime: h.InvisibleTime,
			})
		}
		b, at := &body.Acks[i].Bits, h.Offset-h.StartOffset
		for int64(len(*b)) <= at/8 {
			*b = append(*b, 0)
		}
		(*b)[at/8] |= 1 << (at % 8)
	}
	return remoting.Marshal(&body)
}
