package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// sender sends numbered messages over one connection with a fixed number in flight: every
// answer is followed by the next request of its slot.
type sender struct {
	conn    *conn
	ledger  *ledger
	hist    *hdrhistogram.Histogram
	keys    uniqueKeys
	header  remoting.SendMessageRequest
	queues  int64
	body    []byte
	props   []byte
	slots   []slot
	waiting int
	shape   shape
	limit   time.Time // no further messages after it; zero for none
}

// slot is one request in flight; its index is the request's opaque.
type slot struct {
	number int64
	sent   time.Time
}

func newSender(c *conn, l *ledger, t target, o Options, keys uniqueKeys, hist *hdrhistogram.Histogram) *sender {
	s := &sender{
		conn: c, ledger: l, hist: hist, keys: keys,
		queues: int64(t.queues),
		shape:  o.shape,
		body:   make([]byte, o.Size),
		slots:  make([]slot, o.InFlight),
		header: remoting.SendMessageRequest{
			V2: true, ProducerGroup: producerGroup, Topic: t.topic,
			DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BrokerName: t.name,
			SysFlag: o.shape.sysFlag,
		},
	}
	for i := range s.body {
		s.body[i] = byte('a' + i%26)
	}
	return s
}

// send appends the request of one slot.
func (s *sender) send(i int32) {
	now := time.Now()
	sl := &s.slots[i]
	sl.sent = now
	s.ledger.body(s.body, sl.number, now)
	s.props = append(append(s.props[:0], message.PropertyUniqKey...), 1)
	s.props = append(s.keys.append(s.props, sl.number), "\x02WAIT\x01true\x02"...)
	if f := s.ledger.filter; f.oneIn > 0 {
		s.props = append(strconv.AppendInt(append(s.props, "part\x01"...), f.part(sl.number), 10), 2)
	}
	if s.shape.properties != nil {
		s.props = s.shape.properties(s.props, sl.number)
	}
	s.header.QueueID = int32(sl.number % s.queues)
	s.header.BornTimestamp = now.UnixMilli()
	s.header.Properties = string(s.props)
	s.conn.request(remoting.ReqSendMessageV2, i, &s.header, s.body)
}

// more takes the next number for a slot and sends it, if there is one.
func (s *sender) more(i int32) {
	if !s.limit.IsZero() && time.Now().After(s.limit) {
		return
	}
	number := s.ledger.next.Add(1) - 1
	if number >= s.ledger.total {
		return
	}
	s.slots[i].number = number
	s.waiting++
	s.send(i)
}

func (s *sender) run(ctx context.Context) error {
	for i := range s.slots {
		s.more(int32(i))
	}
	if s.waiting == 0 {
		return nil
	}
	return s.conn.loop(ctx, nil, func(a *remoting.Command) (bool, error) {
		switch {
		case a.Code == remoting.ResSuccess:
			record(s.hist, time.Since(s.slots[a.Opaque].sent))
			s.ledger.stored.Add(1)
			s.waiting--
			s.more(a.Opaque)
		case busy(a):
			s.ledger.refused.Add(1)
			s.send(a.Opaque)
		default:
			return true, refusal(a, "a send")
		}
		return s.waiting == 0, nil
	})
}

// sendRemoting sends all messages of the ledger and returns when all are answered.
func sendRemoting(ctx context.Context, l *ledger, t target, o Options, h *histograms, limit time.Time) error {
	all := newLoops()
	keys := newUniqueKeys()
	for range o.Connections {
		c, err := dial(ctx, t.broker)
		if err != nil {
			return err
		}
		defer c.net.Close()
		s := newSender(c, l, t, o, keys, h.one())
		s.limit = limit
		all.start(func() error { return s.run(ctx) })
	}
	return all.wait()
}
