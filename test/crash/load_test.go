package crash

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

const invisible = 3 * time.Second

// caller is a connection with one request in flight.
type caller struct {
	conn   net.Conn
	answer remoting.Command
}

func connect(ctx context.Context, addr string) (*caller, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return &caller{conn: conn}, nil
}

func (c *caller) call(code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
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

func createTopic(t *testing.T, addr string) {
	t.Helper()
	c, err := connect(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	a, err := c.call(remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6,
		TopicFilterType: "SINGLE_TAG",
	}, nil)
	if err != nil || a.Code != remoting.ResSuccess {
		t.Fatalf("create the topic: %v %+v", err, a)
	}
}

// produce sends messages of growing numbers until the server is gone. A number is never sent
// twice: what got no answer may be in the topic or not.
func produce(ctx context.Context, addr string, l *ledger) {
	c, err := connect(ctx, addr)
	if err != nil {
		return
	}
	defer c.conn.Close()
	for ctx.Err() == nil {
		n := l.next.Add(1)
		body := make([]byte, 8+n%700)
		binary.BigEndian.PutUint64(body, uint64(n))
		a, err := c.call(remoting.ReqSendMessageV2, &remoting.SendMessageRequest{
			V2: true, ProducerGroup: "crash-producers", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
			QueueID: int32(n % queues), BornTimestamp: time.Now().UnixMilli(),
			Properties: fmt.Sprintf("UNIQ_KEY\x01%032X\x02WAIT\x01true\x02", n),
		}, body)
		if err != nil {
			return
		}
		if a.Code == remoting.ResSuccess {
			l.wasStored(n)
		}
	}
}

// consume receives and acknowledges. Under load it leaves every seventh delivery alone for its
// invisible time; to drain the topic it acknowledges all, and ends when none came for long.
func consume(ctx context.Context, t *testing.T, addr string, l *ledger, drain bool) {
	c, err := connect(ctx, addr)
	if err != nil {
		return
	}
	defer c.conn.Close()
	seen, last := 0, time.Now()
	for ctx.Err() == nil {
		deliveries, err := pop(c)
		if err != nil {
			if ctx.Err() == nil && drain {
				t.Errorf("pop: %v", err)
			}
			return
		}
		if len(deliveries) > 0 {
			last = time.Now()
		} else if drain && time.Since(last) > 3*invisible {
			return
		}
		for _, d := range deliveries {
			l.wasDelivered(t, d.number, d.handle)
			if seen++; !drain && seen%7 == 0 {
				continue
			}
			a, err := c.call(remoting.ReqAckMessage, &remoting.AckMessageRequest{
				ConsumerGroup: group, Topic: d.handle.RealTopic(topic, group), QueueID: d.handle.QueueID,
				ExtraInfo: d.handle.String(), Offset: d.handle.Offset,
			}, nil)
			if err != nil {
				l.mayBeAcked(d.number)
				return
			}
			if a.Code == remoting.ResSuccess {
				l.wasAcked(t, d.number, d.handle)
			}
		}
	}
}

type popped struct {
	number int64
	handle receipt.Handle
}

func pop(c *caller) ([]popped, error) {
	a, err := c.call(remoting.ReqPopMessage, &remoting.PopMessageRequest{
		ConsumerGroup: group, Topic: topic, QueueID: -1, MaxMsgNums: 16,
		InvisibleTime: invisible.Milliseconds(), PollTime: 500, BornTime: time.Now().UnixMilli(), ExpType: "TAG", Exp: "*",
	}, nil)
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
	var all []popped
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
		all = append(all, popped{int64(binary.BigEndian.Uint64(m.Body)), handle})
	}
	return all, nil
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

// readAll pulls the whole topic and counts each number.
func readAll(t *testing.T, addr string) map[int64]int {
	t.Helper()
	c, err := connect(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	counts := map[int64]int{}
	for queue := int32(0); queue < queues; queue++ {
		for offset := int64(0); ; {
			a, err := c.call(remoting.ReqPullMessage, &remoting.PullMessageRequest{
				ConsumerGroup: "crash-reader", Topic: topic, QueueID: queue, QueueOffset: offset, MaxMsgNums: 32,
				SysFlag: remoting.PullSubscription, Subscription: "*", ExpressionType: "TAG",
			}, nil)
			if err != nil {
				t.Fatalf("read queue %d: %v", queue, err)
			}
			if a.Code == remoting.ResPullNotFound {
				break
			}
			var h remoting.PullMessageResponse
			if err := a.Decode(&h); err != nil || a.Code != remoting.ResSuccess {
				t.Fatalf("read queue %d at %d: code %d %s, %v", queue, offset, a.Code, a.Remark, err)
			}
			var m message.Message
			for body := a.Body; len(body) > 0; {
				n, err := message.DecodeStored(body, &m)
				if err != nil {
					t.Fatal(err)
				}
				if err := message.CheckCRC(body[:n]); err != nil {
					t.Errorf("queue %d offset %d: %v", queue, m.QueueOffset, err)
				}
				body = body[n:]
				counts[int64(binary.BigEndian.Uint64(m.Body))]++
			}
			offset = h.NextBeginOffset
		}
	}
	return counts
}
