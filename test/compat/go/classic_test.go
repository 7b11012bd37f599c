package compat

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func init() { rlog.SetLogLevel("fatal") }

// classicProducerOptions are those of a producer of its own; repeats are the ledger's, which counts them.
func classicProducerOptions(t *testing.T, s server, more ...producer.Option) []producer.Option {
	return append([]producer.Option{
		producer.WithNameServer([]string{s.namesrv}),
		producer.WithGroupName(fresh(t, "producers")),
		producer.WithInstanceName(fresh(t, "instance")),
		producer.WithRetry(0),
	}, more...)
}

func classicProducer(t *testing.T, s server, options ...producer.Option) rocketmq.Producer {
	t.Helper()
	p, err := rocketmq.NewProducer(classicProducerOptions(t, s, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	t.Cleanup(func() { p.Shutdown() })
	return p
}

// classicSend sends one message, or several in a batch.
func classicSend(t *testing.T, p rocketmq.Producer, messages ...*primitive.Message) *primitive.SendResult {
	t.Helper()
	r, err := p.SendSync(context.Background(), messages...)
	if err != nil || r.Status != primitive.SendOK {
		t.Fatalf("send: %v, %v", r, err)
	}
	return r
}

// classicPush starts a push consumer of all messages of a topic, one by one, for as long as its test runs.
func classicPush(t *testing.T, s server, group, topic string, consume func(*primitive.MessageExt) consumer.ConsumeResult, options ...consumer.Option) rocketmq.PushConsumer {
	t.Helper()
	return classicPushOf(t, s, group, topic, consumer.MessageSelector{}, consume, options...)
}

func classicPushOf(t *testing.T, s server, group, topic string, filter consumer.MessageSelector, consume func(*primitive.MessageExt) consumer.ConsumeResult, options ...consumer.Option) rocketmq.PushConsumer {
	t.Helper()
	c, err := rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNameServer([]string{s.namesrv}),
		consumer.WithGroupName(group),
		consumer.WithInstance(fresh(t, "instance")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeMessageBatchMaxSize(1),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Subscribe(topic, filter, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if t.Context().Err() != nil {
			return consumer.ConsumeRetryLater, nil // what comes after the test is nobody's
		}
		return consume(messages[0]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the push consumer: %v", err)
	}
	t.Cleanup(func() { c.Shutdown() })
	return c
}

func classicMessage(topic string, s sample) *primitive.Message {
	m := primitive.NewMessage(topic, s.body)
	m.WithKeys([]string{s.key})
	m.WithTag(s.tag)
	m.WithProperties(nil)
	for name, value := range s.properties {
		m.WithProperty(name, value)
	}
	m.WithKeys([]string{s.key})
	m.WithTag(s.tag)
	return m
}

// classic is a listener that takes what the ledger expects.
func (l *ledger) classic(m *primitive.MessageExt) consumer.ConsumeResult {
	l.received(m.Body, m.GetKeys(), m.GetTags(), m.GetProperties())
	return consumer.ConsumeSuccess
}

// classicSendAll sends two thirds alone and one third in batches of 10 (code 320).
func classicSendAll(l *ledger, p rocketmq.Producer, topic string) {
	send := func(messages ...*primitive.Message) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := p.SendSync(ctx, messages...)
		return err
	}
	const run = 30
	runs := (l.expected + run - 1) / run
	each(runs, 16, func(i int) {
		var batch []*primitive.Message
		for seq := i * run; seq < min((i+1)*run, l.expected); seq++ {
			m := classicMessage(topic, newSample(seq))
			if seq%run >= 20 {
				batch = append(batch, m)
				continue
			}
			l.again(seq, func() error { return send(m) })
		}
		if len(batch) > 0 {
			l.againMany(i*run+20, len(batch), func() error { return send(batch...) })
		}
	})
}

// TestClassicGoPush sends with the classic producer and receives with a push consumer.
func TestClassicGoPush(t *testing.T) {
	s := target(t)
	topic := s.newTopic(t, "NORMAL")
	l := newLedger(t, messageCount())
	c := classicPush(t, s, fresh(t, "group"), topic, l.classic)
	classicSendAll(l, classicProducer(t, s), topic)
	l.wait(3 * time.Minute)
	if err := c.Shutdown(); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.check()
}

// TestClassicGoPull reads what was sent with a pull consumer that polls its assigned queues.
func TestClassicGoPull(t *testing.T) {
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), fresh(t, "group")
	l := newLedger(t, messageCount())
	classicSendAll(l, classicProducer(t, s), topic)
	c, err := rocketmq.NewPullConsumer(
		consumer.WithNameServer([]string{s.namesrv}),
		consumer.WithGroupName(group),
		consumer.WithInstance(fresh(t, "instance")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the pull consumer: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		select {
		case <-l.complete:
			cancel()
			continue
		default:
		}
		request, err := c.Poll(ctx, time.Second)
		if err != nil {
			continue // nothing new
		}
		for _, m := range request.GetMsgList() {
			l.classic(m)
		}
		c.ACK(context.Background(), request, consumer.ConsumeSuccess)
	}
	if err := c.Shutdown(); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.check()
}

// TestClassicGoRetry: a message that is answered with "later" goes through send-back and comes
// again as the next attempt.
func TestClassicGoRetry(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "NORMAL")
	attempts := gather[int32]()
	classicPush(t, s, fresh(t, "group"), topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		attempts.add(string(m.Body), m.ReconsumeTimes)
		if m.ReconsumeTimes == 0 {
			return consumer.ConsumeRetryLater
		}
		return consumer.ConsumeSuccess
	})
	p := classicProducer(t, s)
	bodies := []string{"a", "b"}
	for _, body := range bodies {
		classicSend(t, p, primitive.NewMessage(topic, []byte(body)))
	}
	all := attempts.await(t, 100*time.Second, "each comes twice", func(all map[string][]int32) bool {
		return len(all["a"]) >= 2 && len(all["b"]) >= 2
	})
	for _, body := range bodies {
		if !slices.Equal(all[body], []int32{0, 1}) {
			t.Errorf("%s was delivered with attempts %v, want [0 1]", body, all[body])
		}
	}
}

// TestClassicGoDeadLetter: with one retry allowed, a message that always fails is seen twice and then
// lies in the group's dead-letter topic.
func TestClassicGoDeadLetter(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 1, false)
	attempts := gather[int32]()
	classicPush(t, s, group, topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		attempts.add(string(m.Body), m.ReconsumeTimes)
		return consumer.ConsumeRetryLater
	}, consumer.WithMaxReconsumeTimes(1))
	classicSend(t, classicProducer(t, s), primitive.NewMessage(topic, []byte("hopeless")))
	s.awaitDeadLetter(t, group)
	if got := attempts.all()["hopeless"]; !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("retries %v before the dead letter, want 0 and 1", got)
	}
}

// TestClassicGoRebalance: two members of a group share the queues, and when one leaves the
// other takes all of them within seconds, not at its next look.
func TestClassicGoRebalance(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), fresh(t, "group")
	received := make(chan string, 10_000)
	member := func(name string) rocketmq.PushConsumer {
		return classicPush(t, s, group, topic, func(*primitive.MessageExt) consumer.ConsumeResult {
			received <- name
			return consumer.ConsumeSuccess
		})
	}
	p := classicProducer(t, s)
	count := func(until time.Time, enough func(map[string]int) bool) bool {
		got := map[string]int{}
		for time.Now().Before(until) {
			p.SendSync(context.Background(), primitive.NewMessage(topic, []byte("x")))
			for more := true; more; {
				select {
				case name := <-received:
					got[name]++
				default:
					more = false
				}
			}
			if enough(got) {
				return true
			}
			time.Sleep(20 * time.Millisecond)
		}
		return false
	}
	first := member("first")
	member("second")
	if !count(time.Now().Add(60*time.Second), func(got map[string]int) bool { return got["first"] > 10 && got["second"] > 10 }) {
		t.Error("two members did not share the queues")
	}
	first.Shutdown()
	if !count(time.Now().Add(60*time.Second), func(got map[string]int) bool { return got["second"] > 100 }) {
		t.Error("the second member did not go on alone")
	}
}

// TestClassicGoBroadcasting: each member of a group gets every message, once.
func TestClassicGoBroadcasting(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), fresh(t, "group")
	members := []*ledger{newLedger(t, 100), newLedger(t, 100)}
	for _, l := range members {
		classicPush(t, s, group, topic, l.classic, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	p := classicProducer(t, s)
	for seq := range members[0].expected {
		classicSend(t, p, classicMessage(topic, newSample(seq)))
	}
	for _, l := range members {
		l.wait(time.Minute)
		l.check()
	}
}

// TestClassicGoSends: what was sent asynchronously is answered, what was sent one-way is not, and
// all of it is there.
func TestClassicGoSends(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "NORMAL")
	l := newLedger(t, 200)
	classicPush(t, s, fresh(t, "group"), topic, l.classic)
	p := classicProducer(t, s)
	l.sendAll(16, func(m sample) error {
		if m.seq%2 == 0 {
			return p.SendOneWay(context.Background(), classicMessage(topic, m))
		}
		answer := make(chan error, 1)
		err := p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) {
			if err == nil && r.Status != primitive.SendOK {
				err = fmt.Errorf("answered with %v", r)
			}
			answer <- err
		}, classicMessage(topic, m))
		if err != nil {
			return err
		}
		return <-answer
	})
	l.wait(time.Minute)
	l.check()
}
