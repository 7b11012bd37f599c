package bench

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// puller reads queues over one connection, each with one request in flight; the queue's
// number is the request's opaque.
type puller struct {
	conn   *conn
	ledger *ledger
	hist   *hdrhistogram.Histogram
	header remoting.PullMessageRequest
	queues map[int32]*queueRead

	member  *member // of an orderly group, or nil
	pulling bool

	// each is called for every first delivery with the moment its time began, if set.
	each func(moment time.Time)
}

type queueRead struct {
	offset int64
	asked  time.Time
}

func newPuller(c *conn, l *ledger, t target, o Options, group string, hist *hdrhistogram.Histogram) *puller {
	p := &puller{
		conn: c, ledger: l, hist: hist,
		queues: map[int32]*queueRead{},
		header: remoting.PullMessageRequest{
			ConsumerGroup: group, Topic: t.topic, MaxMsgNums: int32(o.Batch),
			SysFlag:              remoting.PullSuspend | remoting.PullSubscription,
			SuspendTimeoutMillis: 15_000, Subscription: "*", ExpressionType: "TAG",
			RequestSource: -1, BrokerName: t.name,
		},
	}
	if l.filter.oneIn > 0 {
		p.header.Subscription, p.header.ExpressionType = "part = 0", "SQL92"
	}
	return p
}

func (p *puller) pull(queue int32) {
	q := p.queues[queue]
	q.asked = time.Now()
	p.header.QueueID, p.header.QueueOffset, p.header.CommitOffset = queue, q.offset, q.offset
	p.conn.request(remoting.ReqPullMessage, queue, &p.header, nil)
}

// run ends the connection when it ends.
func (p *puller) run(ctx context.Context, done <-chan struct{}) error {
	defer p.conn.net.Close()
	if len(p.queues) == 0 {
		return nil
	}
	if p.member != nil {
		p.keep(time.Now()) // pulls begin with the locks
	} else {
		for queue := range p.queues {
			p.pull(queue)
		}
	}
	var h remoting.PullMessageResponse
	return p.conn.loop(ctx, done, func(a *remoting.Command) (bool, error) {
		switch {
		case !a.IsResponse(): // a notice that the group has changed; this one's queues are settled
			return false, nil
		case a.Opaque < 0 && p.member != nil:
			return false, p.granted(a)
		}
		q := p.queues[a.Opaque]
		if q == nil {
			return true, errors.New("an answer to a pull that was not asked")
		}
		switch a.Code {
		case remoting.ResSuccess, remoting.ResPullNotFound, remoting.ResPullRetryImmediately, remoting.ResPullOffsetMoved:
		default:
			if !busy(a) {
				return true, refusal(a, "a pull")
			}
			p.ledger.refused.Add(1)
			p.pull(a.Opaque)
			return false, nil
		}
		if err := a.Decode(&h); err != nil {
			return true, err
		}
		if a.Code == remoting.ResSuccess {
			record(p.hist, time.Since(q.asked))
		}
		n, err := p.take(a.Body)
		if err != nil {
			return true, err
		}
		q.offset = h.NextBeginOffset
		if n > 0 {
			p.ledger.done(n)
		}
		p.pull(a.Opaque)
		if p.member != nil {
			p.keep(time.Now())
		}
		return false, nil
	})
}

// take counts the records of a pull's answer.
func (p *puller) take(body []byte) (n int, err error) {
	var m message.Message
	for len(body) > 0 {
		size, err := message.DecodeStored(body, &m)
		if err != nil {
			return n, err
		}
		body = body[size:]
		if p.member != nil {
			if err := p.member.inOrder(&m); err != nil {
				return n, err
			}
		}
		if moment, first := p.ledger.received(m.Body); first {
			n++
			if p.each != nil {
				p.each(moment)
			}
		}
	}
	return n, nil
}

// pullers connects the pullers of a run, each with its part of the queues.
func pullers(ctx context.Context, l *ledger, t target, o Options, h *histograms) ([]*puller, error) {
	all := make([]*puller, min(o.Connections, t.queues))
	for i := range all {
		c, err := dial(ctx, t.broker)
		if err != nil {
			return nil, err
		}
		all[i] = newPuller(c, l, t, o, "bench-pullers", h.one())
	}
	for queue := range t.queues {
		all[queue%len(all)].queues[int32(queue)] = &queueRead{}
	}
	if o.Orderly {
		group, err := t.createGroup(ctx, nil)
		if err != nil {
			return nil, err
		}
		orderlyGroup(group, all)
	}
	return all, nil
}

// pullRemoting reads all queues until every message of the ledger was seen. patience limits
// how long it goes on without a new one.
func pullRemoting(ctx context.Context, l *ledger, t target, o Options, h *histograms, patience time.Duration) error {
	all, err := pullers(ctx, l, t, o, h)
	if err != nil {
		return err
	}
	return consume(ctx, l, all, patience)
}

// await returns when all messages are handled, when given is closed, or when none came for
// the length of patience: what is then missing is lost.
func (l *ledger) await(ctx context.Context, given <-chan struct{}, patience time.Duration) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, changed := l.handled.Load(), time.Now()
	for {
		select {
		case <-l.complete:
			return nil
		case <-given:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if now := l.handled.Load(); now != last {
			last, changed = now, time.Now()
		} else if time.Since(changed) > patience {
			return nil
		}
	}
}
