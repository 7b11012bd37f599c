package bench

import (
	"context"
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
	hist   *hdrhistogram.Histogram // of receives, or of acks where they are alone
	target target
	group  string
	ack    AckMode
	pop    remoting.PopMessageRequest
	slots  []popSlot

	held  []receipt.Handle // to be acknowledged later
	until time.Time        // if set, what is popped lapses then, whenever it was popped

	// each is called for every first delivery with the moment its time began, if set.
	each func(moment time.Time)
	// take, if set, counts a delivery instead of the ledger and reports whether it is to be
	// acknowledged.
	take func(m *message.Message, h receipt.Handle) (ack bool)
}

type popSlot struct {
	asked time.Time
	acks  []receipt.Handle
}

// poppers connects the poppers of a run.
func poppers(ctx context.Context, l *ledger, t target, o Options, group string) ([]*popper, error) {
	all := make([]*popper, o.Connections)
	var unused histograms
	for i := range all {
		c, err := dial(ctx, t.broker)
		if err != nil {
			return nil, err
		}
		p := &popper{
			conn: c, ledger: l, hist: unused.one(), target: t, group: group, ack: o.Ack,
			slots: make([]popSlot, o.InFlight),
			pop: remoting.PopMessageRequest{
				ConsumerGroup: group, Topic: t.topic, QueueID: -1, MaxMsgNums: int32(o.Batch),
				InvisibleTime: o.invisible().Milliseconds(), PollTime: popPoll.Milliseconds(),
				ExpType: "TAG", Exp: "*", BrokerName: t.name,
			},
		}
		if l.filter.oneIn > 0 {
			p.pop.ExpType, p.pop.Exp = "SQL92", "part = 0"
		}
		all[i] = p
	}
	return all, nil
}

func popRemoting(ctx context.Context, l *ledger, t target, o Options, group string) (run popRun, err error) {
	all, err := poppers(ctx, l, t, o, group)
	run.receive = func(ctx context.Context, h *histograms) error {
		for _, p := range all {
			p.hist = h.one()
		}
		return consume(ctx, l, all, popPatience)
	}
	run.acknowledge = func(ctx context.Context, h *histograms) error {
		acking := newLoops()
		for _, p := range all {
			p.hist = h.one()
			acking.start(func() error { return p.ackHeld(ctx) })
		}
		return acking.wait()
	}
	return run, err
}

// run pops until done is closed and ends the connection then.
func (p *popper) run(ctx context.Context, done <-chan struct{}) error {
	defer p.conn.net.Close()
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
		n := 1
		if p.ack == AckBatch {
			n = len(s.acks)
		}
		p.ledger.done(n)
		s.acks = s.acks[n:]
		p.follow(a.Opaque)
		return false, nil
	})
}

func (p *popper) ask(i int32) {
	now := time.Now()
	p.slots[i].asked = now
	p.pop.BornTime = now.UnixMilli()
	if !p.until.IsZero() {
		p.pop.InvisibleTime = max(p.until.Sub(now).Milliseconds(), 1)
	}
	p.conn.request(remoting.ReqPopMessage, i, &p.pop, nil)
}

// popped takes a pop's answer.
func (p *popper) popped(i int32, a *remoting.Command) error {
	s := &p.slots[i]
	switch {
	case a.Code == remoting.ResSuccess:
	case a.Code == remoting.ResPollingTimeout, a.Code == remoting.ResPollingFull:
		p.ask(i)
		return nil
	case busy(a):
		p.ledger.refused.Add(1)
		p.ask(i)
		return nil
	default:
		return refusal(a, "a pop")
	}
	record(p.hist, time.Since(s.asked))
	of, err := readPopped(a, p.target.name)
	if err != nil {
		return err
	}
	s.acks = s.acks[:0]
	var m message.Message
	for body := a.Body; len(body) > 0; {
		n, err := message.DecodeStored(body, &m)
		if err != nil {
			return err
		}
		body = body[n:]
		h, err := of.receipt(&m)
		if err != nil {
			return err
		}
		if p.taken(&m, h) {
			s.acks = append(s.acks, h)
		}
	}
	p.follow(i)
	return nil
}

// taken counts a delivery and reports whether it is to be acknowledged: of a duplicate, only
// the first delivery is.
func (p *popper) taken(m *message.Message, h receipt.Handle) (ack bool) {
	if p.take != nil {
		return p.take(m, h)
	}
	moment, first := p.ledger.received(m.Body)
	if !first {
		return false
	}
	if p.each != nil {
		p.each(moment)
	}
	switch p.ack {
	case AckOne, AckBatch:
		return true
	case AckLater:
		p.held = append(p.held, h)
	}
	p.ledger.done(1)
	return false
}

// follow sends the slot's next request: an ack, or a pop when all is acknowledged.
func (p *popper) follow(i int32) {
	switch s := &p.slots[i]; {
	case len(s.acks) == 0:
		p.ask(i)
	case p.ack == AckBatch:
		p.conn.request(remoting.ReqBatchAckMessage, i, nil, ackBatch(p.group, p.target.topic, s.acks))
	default:
		p.askAck(i, s.acks[0])
	}
}

func (p *popper) askAck(i int32, h receipt.Handle) {
	p.conn.request(remoting.ReqAckMessage, i, &remoting.AckMessageRequest{
		ConsumerGroup: p.group, Topic: h.RealTopic(p.target.topic, p.group), QueueID: h.QueueID,
		ExtraInfo: h.String(), Offset: h.Offset, BrokerName: p.target.name,
	}, nil)
}

// ackHeld acknowledges what the popper holds, one by one, over a connection of its own.
func (p *popper) ackHeld(ctx context.Context) (err error) {
	if p.conn, err = dial(ctx, p.target.broker); err != nil {
		return err
	}
	defer p.conn.net.Close()
	next, waiting := 0, 0
	ack := func(i int32) {
		if next == len(p.held) {
			return
		}
		p.slots[i].asked = time.Now()
		p.askAck(i, p.held[next])
		next++
		waiting++
	}
	for i := range p.slots {
		ack(int32(i))
	}
	if waiting == 0 {
		return nil
	}
	return p.conn.loop(ctx, nil, func(a *remoting.Command) (bool, error) {
		if a.Code != remoting.ResSuccess {
			return true, refusal(a, "an ack")
		}
		record(p.hist, time.Since(p.slots[a.Opaque].asked))
		p.ledger.done(1)
		waiting--
		ack(a.Opaque)
		return waiting == 0, nil
	})
}
