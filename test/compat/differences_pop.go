package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

var popDifferences = []difference{
	{
		row: "ack or change with a receipt that was replaced, or has expired", apache: `0 `, bolide: `208 .*`,
		ask: func(w *wire) string {
			q := w.popTopic("a")
			h := w.pop(q, 60_000)[0]
			w.ok(w.call(w.broker(), remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{ConsumerGroup: q.group, Topic: q.topic,
				ExtraInfo: h.String(), Offset: h.Offset, InvisibleTime: 30_000}, nil))
			return w.says(w.call(w.broker(), remoting.ReqAckMessage, &remoting.AckMessageRequest{ConsumerGroup: q.group, Topic: q.topic, ExtraInfo: h.String(), Offset: h.Offset}, nil))
		},
	}, {
		row: "batch ack with messages that can't be acknowledged", apache: `0 `, bolide: `208 .*1.*`,
		ask: func(w *wire) string {
			q := w.popTopic("a", "b")
			h := w.pop(q, 60_000)[1]
			w.ok(w.call(w.broker(), remoting.ReqAckMessage, &remoting.AckMessageRequest{ConsumerGroup: q.group, Topic: q.topic, ExtraInfo: h.String(), Offset: h.Offset}, nil))
			w.ok(w.call(w.broker(), remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{ConsumerGroup: q.group, Topic: q.topic,
				ExtraInfo: h.String(), Offset: h.Offset - 1, InvisibleTime: 30_000}, nil))
			a := remoting.BatchAck{ConsumerGroup: q.group, Topic: q.topic, Retry: "0", StartOffset: h.StartOffset, PopTime: h.PopTime, InvisibleTime: h.InvisibleTime,
				ReviveQueueID: h.ReviveQueue}
			a.Set(0)
			a.Set(1)
			return w.says(w.call(w.broker(), remoting.ReqBatchAckMessage, nil, remoting.Marshal(&remoting.BatchAckBody{BrokerName: "broker-a", Acks: []remoting.BatchAck{a}})))
		},
	}, {
		row: "pop by a client whose clock is behind", apache: `210 with 0`, bolide: `0 with 1`,
		ask: func(w *wire) string {
			q := w.popTopic("a")
			h := w.popHeader(q, 60_000)
			h.BornTime -= time.Hour.Milliseconds()
			a := w.call(w.broker(), remoting.ReqPopMessage, h, nil)
			return fmt.Sprintf("%d with %d", a.Code, len(w.records(a.Body)))
		},
	}, {
		row: "consumerProgress of a POP group, messages in flight", apache: `0`, bolide: `2`,
		ask: func(w *wire) string {
			q := w.popTopic("a", "b", "c", "d")
			h := w.popHeader(q, 60_000)
			h.MaxMsgNums = 3
			list := w.popAs(h)
			w.ok(w.call(w.broker(), remoting.ReqAckMessage, &remoting.AckMessageRequest{ConsumerGroup: q.group, Topic: q.topic, ExtraInfo: list[1].String(), Offset: list[1].Offset}, nil))
			a := w.ok(w.call(w.broker(), remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsRequest{ConsumerGroup: q.group, Topic: q.topic}, nil))
			var s remoting.ConsumeStats
			w.must(remoting.Unmarshal(a.Body, &s))
			at := s.OffsetTable[remoting.MessageQueue{Topic: q.topic, BrokerName: "broker-a"}]
			return fmt.Sprint(at.PullOffset - at.ConsumerOffset)
		},
	},
}

// popped is a topic of one queue and a group that pops it.
type popped struct{ topic, group string }

func (w *wire) popTopic(bodies ...string) popped {
	return popped{topic: w.filled(bodies...), group: w.group()}
}

// popHeader asks for all messages, from the oldest on.
func (w *wire) popHeader(q popped, invisible int64) *remoting.PopMessageRequest {
	return &remoting.PopMessageRequest{ConsumerGroup: q.group, Topic: q.topic, QueueID: 0, MaxMsgNums: 32, InvisibleTime: invisible,
		PollTime: 10_000, BornTime: time.Now().UnixMilli(), InitMode: 0}
}

// pop returns the receipts of all messages.
func (w *wire) pop(q popped, invisible int64) []receipt.Handle {
	return w.popAs(w.popHeader(q, invisible))
}

func (w *wire) popAs(ask *remoting.PopMessageRequest) []receipt.Handle {
	return w.receipts(w.ok(w.call(w.broker(), remoting.ReqPopMessage, ask, nil)))
}

func (w *wire) receipts(a *remoting.Command) (out []receipt.Handle) {
	var h remoting.PopMessageResponse
	w.must(a.Decode(&h))
	starts, err := receipt.ParseStartOffsets(h.StartOffsetInfo)
	w.must(err)
	for _, m := range w.records(a.Body) {
		flag := receipt.FlagNormal
		if strings.HasPrefix(m.Topic, "%RETRY%") {
			flag = receipt.FlagRetryV1
		}
		out = append(out, receipt.Handle{StartOffset: starts[receipt.Queue{RetryFlag: flag, QueueID: m.QueueID}], PopTime: h.PopTime, InvisibleTime: h.InvisibleTime,
			ReviveQueue: h.ReviveQid, RetryFlag: flag, Broker: "broker-a", QueueID: m.QueueID, Offset: m.QueueOffset, LogOffset: -1})
	}
	return out
}

func (w *wire) records(body []byte) (out []*message.Message) {
	for len(body) > 0 {
		m := &message.Message{}
		n, err := message.DecodeStored(body, m)
		w.must(err)
		out, body = append(out, m.Clone()), body[n:]
	}
	return out
}
