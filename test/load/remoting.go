package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Delivery is one message as a consumer got it.
type Delivery struct {
	Number int64
	Handle receipt.Handle
	ID     string // message id
}

// Consumer is one client, whatever it speaks. An error means that it is useless from now
// on; refusals are none.
type Consumer interface {
	// Receive waits for up to n messages for a while.
	Receive(n int, invisible, wait time.Duration) ([]Delivery, error)
	// Ack acknowledges, together if they are several, and says which were.
	Ack(all []Delivery) ([]Answer, error)
	// Change makes a delivery lapse in invisible from now; nil means that it was refused.
	Change(d Delivery, invisible time.Duration) (*Delivery, error)
	Protocol() string
	Close()
}

// Answer is the answer to one acknowledgement.
type Answer int

// The answers. Unclear is that to a batch of which some are done, and that of a server that
// stops.
const (
	Accepted Answer = iota
	Declined
	Unclear
)

// Acknowledge acknowledges what the ledger knows as delivered, and notes each answer there.
// It returns how many were accepted.
func Acknowledge(c Consumer, l *Ledger, all []Delivery) (accepted int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	for _, d := range all {
		l.Asked(d.Number)
	}
	answers, err := c.Ack(all)
	for i, d := range all {
		if err != nil || answers[i] == Unclear {
			l.Unanswered(d.Number)
			continue
		}
		l.Answered(d.Number, d.Handle, answers[i] == Accepted)
		if answers[i] == Accepted {
			accepted++
		}
	}
	return accepted, err
}

// Place is what producers and consumers use of a server.
type Place struct {
	Broker string // Remoting address of the broker
	GRPC   string // address of the gRPC endpoint
	Topic  string
	Group  string
	Queues int
}

// Remoting is a connection to a broker with one request in flight.
type Remoting struct {
	place  Place
	conn   net.Conn
	answer remoting.Command
}

// DialRemoting connects; the connection ends with ctx.
func DialRemoting(ctx context.Context, p Place) (*Remoting, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.Broker)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return &Remoting{place: p, conn: conn}, nil
}

// Close ends the connection.
func (c *Remoting) Close() { c.conn.Close() }

// Protocol names it in reports.
func (c *Remoting) Protocol() string { return "Remoting" }

func (c *Remoting) call(code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
	c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.conn.Write(remoting.AppendRequest(nil, code, 1, 0, h, body)); err != nil {
		return nil, err
	}
	var length [remoting.LengthSize]byte
	if _, err := io.ReadFull(c.conn, length[:]); err != nil {
		return nil, err
	}
	size, err := remoting.FrameSize(length[:])
	if err != nil {
		return nil, err
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(c.conn, frame); err != nil {
		return nil, err
	}
	return &c.answer, c.answer.Parse(frame)
}

// CreateTopic makes the topic with its queues.
func (c *Remoting) CreateTopic() error {
	a, err := c.call(remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: c.place.Topic, DefaultTopic: "TBW102", ReadQueueNums: int32(c.place.Queues), WriteQueueNums: int32(c.place.Queues), Perm: 6,
		TopicFilterType: "SINGLE_TAG",
	}, nil)
	if err == nil && a.Code != remoting.ResSuccess {
		err = fmt.Errorf("create the topic: code %d %s", a.Code, a.Remark)
	}
	return err
}

// CreateGroup makes the group, with so many attempts that none of its messages dies.
func (c *Remoting) CreateGroup() error {
	g := remoting.DefaultSubscriptionGroupConfig(c.place.Group)
	g.RetryMaxTimes = 100_000
	a, err := c.call(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g))
	if err == nil && a.Code != remoting.ResSuccess {
		err = fmt.Errorf("create the group: code %d %s", a.Code, a.Remark)
	}
	return err
}

// Send stores a message of this number.
func (c *Remoting) Send(n int64) (bool, error) { return c.send(n, "") }

// SendTimer stores a message of this number that is to be delivered at a time.
func (c *Remoting) SendTimer(n int64, at time.Time) (bool, error) {
	return c.send(n, fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", at.UnixMilli()))
}

func (c *Remoting) send(n int64, more string) (bool, error) {
	body := make([]byte, 8+n%700)
	binary.BigEndian.PutUint64(body, uint64(n))
	a, err := c.call(remoting.ReqSendMessageV2, &remoting.SendMessageRequest{
		V2: true, ProducerGroup: "load-producers", Topic: c.place.Topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
		QueueID: int32(n % int64(c.place.Queues)), BornTimestamp: time.Now().UnixMilli(),
		Properties: fmt.Sprintf("UNIQ_KEY\x01%032X\x02WAIT\x01true\x02", n) + more,
	}, body)
	return err == nil && a.Code == remoting.ResSuccess, err
}

// Receive pops.
func (c *Remoting) Receive(n int, invisible, wait time.Duration) ([]Delivery, error) {
	a, err := c.call(remoting.ReqPopMessage, c.popRequest(n, invisible, wait), nil)
	if err != nil || a.Code != remoting.ResSuccess {
		return nil, err
	}
	var h remoting.PopMessageResponse
	if err := a.Decode(&h); err != nil {
		return nil, err
	}
	starts, err := receipt.ParseStartOffsets(h.StartOffsetInfo)
	if err != nil {
		return nil, err
	}
	var all []Delivery
	var m message.Message
	for body := a.Body; len(body) > 0; {
		n, err := message.DecodeStored(body, &m)
		if err != nil {
			return nil, err
		}
		body = body[n:]
		handle, err := handleOf(&m, h, starts)
		if err != nil {
			return nil, err
		}
		all = append(all, Delivery{Number: int64(binary.BigEndian.Uint64(m.Body)), Handle: handle})
	}
	return all, nil
}

func (c *Remoting) popRequest(n int, invisible, wait time.Duration) *remoting.PopMessageRequest {
	return &remoting.PopMessageRequest{
		ConsumerGroup: c.place.Group, Topic: c.place.Topic, QueueID: -1, MaxMsgNums: int32(n),
		InvisibleTime: invisible.Milliseconds(), PollTime: wait.Milliseconds(), BornTime: time.Now().UnixMilli(), ExpType: "TAG", Exp: "*",
	}
}

// Vanish asks for messages and goes away without waiting for the answer.
func (c *Remoting) Vanish(n int, invisible time.Duration) {
	c.conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.conn.Write(remoting.AppendRequest(nil, remoting.ReqPopMessage, 1, 0, c.popRequest(n, invisible, time.Second), nil))
	c.conn.Close()
}

// Ack acknowledges one, or several by their bits.
func (c *Remoting) Ack(all []Delivery) ([]Answer, error) {
	if len(all) > 1 {
		return c.ackBatch(all)
	}
	d := &all[0]
	a, err := c.call(remoting.ReqAckMessage, &remoting.AckMessageRequest{
		ConsumerGroup: c.place.Group, Topic: d.Handle.RealTopic(c.place.Topic, c.place.Group), QueueID: d.Handle.QueueID,
		ExtraInfo: d.Handle.String(), Offset: d.Handle.Offset,
	}, nil)
	if err != nil {
		return nil, err
	}
	switch a.Code {
	case remoting.ResSuccess:
		return []Answer{Accepted}, nil
	case remoting.ResServiceNotAvailable, remoting.ResGoAway: // it is stopping, and says nothing of the receipt
		return []Answer{Unclear}, nil
	}
	return []Answer{Declined}, nil
}

func (c *Remoting) ackBatch(all []Delivery) ([]Answer, error) {
	body := remoting.BatchAckBody{BrokerName: all[0].Handle.Broker}
	for _, d := range all {
		h := d.Handle
		i := slices.IndexFunc(body.Acks, func(a remoting.BatchAck) bool {
			return a.StartOffset == h.StartOffset && a.QueueID == h.QueueID && a.Retry == fmt.Sprint(h.RetryFlag) && a.PopTime == h.PopTime && a.InvisibleTime == h.InvisibleTime
		})
		if i < 0 {
			i = len(body.Acks)
			body.Acks = append(body.Acks, remoting.BatchAck{
				ConsumerGroup: c.place.Group, Topic: c.place.Topic, Retry: fmt.Sprint(h.RetryFlag), StartOffset: h.StartOffset,
				QueueID: h.QueueID, ReviveQueueID: h.ReviveQueue, PopTime: h.PopTime, InvisibleTime: h.InvisibleTime,
			})
		}
		bit := h.Offset - h.StartOffset
		for int64(len(body.Acks[i].Bits)) <= bit/8 {
			body.Acks[i].Bits = append(body.Acks[i].Bits, 0)
		}
		body.Acks[i].Bits[bit/8] |= 1 << (bit % 8)
	}
	a, err := c.call(remoting.ReqBatchAckMessage, nil, remoting.Marshal(&body))
	if err != nil {
		return nil, err
	}
	answer := Unclear
	if a.Code == remoting.ResSuccess {
		answer = Accepted
	}
	return slices.Repeat([]Answer{answer}, len(all)), nil
}

// Change asks for another invisible time.
func (c *Remoting) Change(d Delivery, invisible time.Duration) (*Delivery, error) {
	a, err := c.call(remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{
		ConsumerGroup: c.place.Group, Topic: d.Handle.RealTopic(c.place.Topic, c.place.Group), QueueID: d.Handle.QueueID,
		ExtraInfo: d.Handle.String(), Offset: d.Handle.Offset, InvisibleTime: invisible.Milliseconds(),
	}, nil)
	if err != nil || a.Code != remoting.ResSuccess {
		return nil, err
	}
	var h remoting.ChangeMessageInvisibleTimeResponse
	if err := a.Decode(&h); err != nil {
		return nil, err
	}
	d.Handle.StartOffset, d.Handle.PopTime, d.Handle.InvisibleTime, d.Handle.ReviveQueue = d.Handle.Offset, h.PopTime, h.InvisibleTime, h.ReviveQid
	return &d, nil
}

// handleOf is the receipt that a client makes for a message of a POP answer.
func handleOf(m *message.Message, h remoting.PopMessageResponse, starts map[receipt.Queue]int64) (receipt.Handle, error) {
	if ready := m.Properties.Value("POP_CK"); ready != "" {
		return receipt.Parse(ready)
	}
	flags := []byte{receipt.FlagNormal}
	if strings.HasPrefix(m.Topic, "%RETRY%") {
		flags = []byte{receipt.FlagRetryV1, receipt.FlagRetryV2}
	}
	for _, flag := range flags {
		if start, ok := starts[receipt.Queue{RetryFlag: flag, QueueID: m.QueueID}]; ok {
			return receipt.Handle{
				StartOffset: start, PopTime: h.PopTime, InvisibleTime: h.InvisibleTime, ReviveQueue: h.ReviveQid,
				RetryFlag: flag, Broker: "broker-a", QueueID: m.QueueID, Offset: m.QueueOffset, LogOffset: receipt.NoLogOffset,
			}, nil
		}
	}
	return receipt.Handle{}, fmt.Errorf("topic %s queue %d is not in %q", m.Topic, m.QueueID, h.StartOffsetInfo)
}

// ReadAll pulls the whole topic and counts each number.
func (c *Remoting) ReadAll() (map[int64]int, error) {
	counts := map[int64]int{}
	return counts, c.Each(func(n int64, _ *message.Message) { counts[n]++ })
}

// Await waits for the message at an offset, and says whether it is there.
func (c *Remoting) Await(queue int32, offset int64, wait time.Duration) (bool, error) {
	a, err := c.call(remoting.ReqPullMessage, &remoting.PullMessageRequest{
		ConsumerGroup: "load-reader", Topic: c.place.Topic, QueueID: queue, QueueOffset: offset, MaxMsgNums: 1,
		SysFlag: remoting.PullSubscription | remoting.PullSuspend, SuspendTimeoutMillis: wait.Milliseconds(), Subscription: "*", ExpressionType: "TAG",
	}, nil)
	return err == nil && a.Code == remoting.ResSuccess, err
}

// Each pulls the whole topic.
func (c *Remoting) Each(each func(n int64, m *message.Message)) error {
	for queue := range int32(c.place.Queues) {
		for offset := int64(0); ; {
			a, err := c.call(remoting.ReqPullMessage, &remoting.PullMessageRequest{
				ConsumerGroup: "load-reader", Topic: c.place.Topic, QueueID: queue, QueueOffset: offset, MaxMsgNums: 32,
				SysFlag: remoting.PullSubscription, Subscription: "*", ExpressionType: "TAG",
			}, nil)
			if err != nil {
				return fmt.Errorf("read queue %d: %w", queue, err)
			}
			if a.Code == remoting.ResPullNotFound {
				break
			}
			var h remoting.PullMessageResponse
			if err := a.Decode(&h); err != nil || a.Code != remoting.ResSuccess {
				return errors.Join(err, fmt.Errorf("read queue %d at %d: code %d %s", queue, offset, a.Code, a.Remark))
			}
			var m message.Message
			for body := a.Body; len(body) > 0; {
				n, err := message.DecodeStored(body, &m)
				if err == nil {
					err = message.CheckCRC(body[:n])
				}
				if err != nil {
					return fmt.Errorf("queue %d offset %d: %w", queue, m.QueueOffset, err)
				}
				body = body[n:]
				each(int64(binary.BigEndian.Uint64(m.Body)), &m)
			}
			offset = h.NextBeginOffset
		}
	}
	return nil
}
