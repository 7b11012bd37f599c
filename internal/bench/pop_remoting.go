package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// popper receives and acknowledges over one connection. Each slot has one request in flight:
// a pop, then the acks of what it brought, then the next pop.
type popper struct {
	conn   *conn
	ledger *ledger
	hist   *hdrhistogram.Histogram
	target target
	group  string
	batch  bool
	pop    remoting.PopMessageRequest
	slots  []popSlot
}

type popSlot struct {
	asked time.Time
	acks  []receipt.Handle
	first int // of how many messages of these acks this is the first delivery
}

func popRemoting(ctx context.Context, l *ledger, t target, o Options, group string) (func(context.Context, *histograms) error, error) {
	poppers := make([]*popper, o.Connections)
	for i := range poppers {
		c, err := dial(ctx, t.broker)
		if err != nil {
			return nil, err
		}
		poppers[i] = &popper{
			conn: c, ledger: l, target: t, group: group, batch: o.AckBatch,
			slots: make([]popSlot, o.InFlight),
			pop: remoting.PopMessageRequest{
				ConsumerGroup: group, Topic: t.topic, QueueID: -1, MaxMsgNums: int32(o.Batch),
				InvisibleTime: popInvisible.Milliseconds(), PollTime: popPoll.Milliseconds(),
				ExpType: "TAG", Exp: "*", BrokerName: t.name,
			},
		}
	}
	return func(ctx context.Context, h *histograms) error {
		all, watching := newLoops(), newLoops()
		given, stop := make(chan struct{}), make(chan struct{})
		watching.start(func() error {
			defer close(stop)
			return l.await(ctx, given, 20*time.Second)
		})
		for _, p := range poppers {
			p.hist = h.one()
			all.start(func() error {
				defer p.conn.net.Close()
				return p.run(ctx, stop)
			})
		}
		err := all.wait()
		close(given)
		watching.wait()
		return err
	}, nil
}

func (p *popper) run(ctx context.Context, done <-chan struct{}) error {
	for i := range p.slots {
		p.ask(int32(i))
	}
	return p.conn.loop(ctx, done, func(a *remoting.Command) (bool, error) {
		s := &p.slots[a.Opaque]
		if len(s.acks) == 0 {
			return false, p.popped(a.Opaque, a)
		}
		if a.Code != remoting.ResSuccess {
			return true, refusal(a, "an ack")
		}
		if p.batch {
			p.ledger.done(s.first)
			s.acks = s.acks[:0]
		} else {
			p.ledger.done(1)
			s.acks = s.acks[1:]
		}
		p.follow(a.Opaque)
		return false, nil
	})
}

func (p *popper) ask(i int32) {
	now := time.Now()
	p.slots[i].asked = now
	p.pop.BornTime = now.UnixMilli()
	p.conn.request(remoting.ReqPopMessage, i, &p.pop, nil)
}

// popped takes a pop's answer.
func (p *popper) popped(i int32, a *remoting.Command) error {
	s := &p.slots[i]
	switch a.Code {
	case remoting.ResSuccess:
	case remoting.ResPollingTimeout, remoting.ResPollingFull:
		p.ask(i)
		return nil
	default:
		if !busy(a.Code) {
			return refusal(a, "a pop")
		}
		p.ledger.refused.Add(1)
		p.ask(i)
		return nil
	}
	record(p.hist, time.Since(s.asked))
	var h remoting.PopMessageResponse
	if err := a.Decode(&h); err != nil {
		return err
	}
	if err := p.receipts(s, h, a.Body); err != nil {
		return err
	}
	p.follow(i)
	return nil
}

// receipts makes the receipt of every message, as official clients do.
func (p *popper) receipts(s *popSlot, h remoting.PopMessageResponse, body []byte) error {
	starts, err := receipt.ParseStartOffsets(h.StartOffsetInfo)
	if err != nil {
		return err
	}
	s.acks, s.first = s.acks[:0], 0
	var m message.Message
	for len(body) > 0 {
		n, err := message.DecodeStored(body, &m)
		if err != nil {
			return err
		}
		body = body[n:]
		if _, first := p.ledger.received(m.Body); first {
			s.first++
		} else {
			continue // a duplicate is counted, and its first delivery acknowledged
		}
		q := receipt.Queue{RetryFlag: receipt.FlagNormal, QueueID: m.QueueID}
		start, ok := starts[q]
		if !ok {
			return fmt.Errorf("queue %d is not in the answer's start offsets %q", m.QueueID, h.StartOffsetInfo)
		}
		s.acks = append(s.acks, receipt.Handle{
			StartOffset: start, PopTime: h.PopTime, InvisibleTime: h.InvisibleTime, ReviveQueue: h.ReviveQid,
			Broker: p.target.name, QueueID: m.QueueID, Offset: m.QueueOffset, LogOffset: receipt.NoLogOffset,
		})
	}
	return nil
}

// follow sends the slot's next request: an ack, or a pop when all is acknowledged.
func (p *popper) follow(i int32) {
	s := &p.slots[i]
	switch {
	case len(s.acks) == 0:
		p.ask(i)
	case p.batch:
		p.conn.request(remoting.ReqBatchAckMessage, i, nil, p.batchAck(s.acks))
	default:
		h := s.acks[0]
		p.conn.request(remoting.ReqAckMessage, i, &remoting.AckMessageRequest{
			ConsumerGroup: p.group, Topic: p.target.topic, QueueID: h.QueueID,
			ExtraInfo: h.String(), Offset: h.Offset, BrokerName: p.target.name,
		}, nil)
	}
}

// batchAck is the body of BATCH_ACK_MESSAGE: one entry per queue with a bit per message,
// counted from the batch's start offset.
func (p *popper) batchAck(acks []receipt.Handle) []byte {
	type entry struct {
		Group     string `json:"c"`
		Topic     string `json:"t"`
		Retry     string `json:"r"`
		Start     int64  `json:"so"`
		Queue     int32  `json:"q"`
		Revive    int32  `json:"rq"`
		PopTime   int64  `json:"pt"`
		Invisible int64  `json:"it"`
		Bits      string `json:"b"`
	}
	bits := map[int32][]byte{}
	var entries []entry
	for _, h := range acks {
		at := h.Offset - h.StartOffset
		b, ok := bits[h.QueueID]
		if !ok {
			entries = append(entries, entry{
				Group: p.group, Topic: p.target.topic, Retry: "0", Start: h.StartOffset, Queue: h.QueueID,
				Revive: h.ReviveQueue, PopTime: h.PopTime, Invisible: h.InvisibleTime,
			})
		}
		for int64(len(b)) <= at/8 {
			b = append(b, 0)
		}
		b[at/8] |= 1 << (at % 8)
		bits[h.QueueID] = b
	}
	for i := range entries {
		entries[i].Bits = base64.StdEncoding.EncodeToString(bits[entries[i].Queue])
	}
	body, _ := json.Marshal(map[string]any{"brokerName": p.target.name, "acks": entries})
	return body
}
