package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// What a classic consumer does beside its pulls.
const (
	lockEvery   = 20 * time.Second
	beatEvery   = 30 * time.Second
	commitEvery = 5 * time.Second
)

// Numbers of requests that are not for a queue.
const (
	beatAnswer int32 = -1 - iota
	lockAnswer
)

// member is what makes a puller one of an orderly group: it is known by heartbeats, holds the
// locks of its queues and renews them, and commits with each pull what it has handled, which
// has to come in the order of the queue.
type member struct {
	client, group string
	beat          []byte
	lock          []byte

	beaten, locked, committed time.Time
	expected                  map[int32]int64 // the next offset of each queue
}

func (p *puller) orderly(client string) {
	p.header.SysFlag |= remoting.PullCommitOffset
	m := &member{client: client, group: p.header.ConsumerGroup, expected: make(map[int32]int64)}
	m.beat = remoting.Marshal(&remoting.HeartbeatData{ClientID: client, ConsumerDataSet: []remoting.ConsumerData{{GroupName: m.group,
		ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromFirstOffset,
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: p.header.Topic, SubString: "*", ExpressionType: "TAG", SubVersion: time.Now().UnixMilli()}}}}})
	body := remoting.LockBatchBody{ConsumerGroup: m.group, ClientID: client}
	for queue := range p.queues {
		body.MQSet = append(body.MQSet, remoting.MessageQueue{Topic: p.header.Topic, BrokerName: p.header.BrokerName, QueueID: queue})
	}
	m.lock = remoting.Marshal(&body)
	p.member = m
}

// keep sends what is due beside the pulls.
func (p *puller) keep(now time.Time) {
	m := p.member
	if now.Sub(m.beaten) >= beatEvery {
		m.beaten = now
		p.conn.request(remoting.ReqHeartBeat, beatAnswer, nil, m.beat)
	}
	if now.Sub(m.locked) >= lockEvery {
		m.locked = now
		p.conn.request(remoting.ReqLockBatchMQ, lockAnswer, nil, m.lock)
	}
	if now.Sub(m.committed) >= commitEvery {
		m.committed = now
		for queue, q := range p.queues {
			h := remoting.UpdateConsumerOffsetRequest{ConsumerGroup: m.group, Topic: p.header.Topic, QueueID: queue, CommitOffset: q.offset}
			p.conn.oneway(remoting.ReqUpdateConsumerOffset, &h)
		}
	}
}

// granted takes the answer to a heartbeat or to a lock; the first locks begin the pulls.
func (p *puller) granted(a *remoting.Command) error {
	if a.Code != remoting.ResSuccess {
		return refusal(a, "a heartbeat or a lock")
	}
	if a.Opaque != lockAnswer {
		return nil
	}
	var got remoting.LockBatchResponseBody
	if err := remoting.Unmarshal(a.Body, &got); err != nil {
		return err
	}
	if len(got.LockOKMQSet) != len(p.queues) {
		return fmt.Errorf("%s got the locks of %d of its %d queues", p.member.client, len(got.LockOKMQSet), len(p.queues))
	}
	if !p.pulling {
		p.pulling = true
		for queue := range p.queues {
			p.pull(queue)
		}
	}
	return nil
}

var errOrder = errors.New("messages of a queue came out of order")

// inOrder checks that a message is the next of its queue.
func (m *member) inOrder(msg *message.Message) error {
	if want := m.expected[msg.QueueID]; msg.QueueOffset != want {
		return fmt.Errorf("%w: offset %d of queue %d where %d was next", errOrder, msg.QueueOffset, msg.QueueID, want)
	}
	m.expected[msg.QueueID]++
	return nil
}

// orderlyGroup makes the pullers the members of a new group.
func orderlyGroup(group string, all []*puller) {
	for i, p := range all {
		p.header.ConsumerGroup = group
		p.orderly(fmt.Sprintf("127.0.0.1@%s-%d", group, i))
	}
}
