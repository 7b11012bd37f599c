package compat

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func init() { rlog.SetLogLevel("fatal") }

func classicProducer(t *testing.T, s server, options ...producer.Option) rocketmq.Producer {
	t.Helper()
	p, err := rocketmq.NewProducer(append([]producer.Option{
		producer.WithNameServer([]string{s.namesrv}),
		producer.WithGroupName(fresh(t, "producers")),
		producer.WithInstanceName(fresh(t, "instance")),
		producer.WithRetry(0),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	t.Cleanup(func() { p.Shutdown() })
	return p
}

func classicPush(t *testing.T, s server, group string, options ...consumer.Option) rocketmq.PushConsumer {
	t.Helper()
	c, err := rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNameServer([]string{s.namesrv}),
		consumer.WithGroupName(group),
		consumer.WithInstance(fresh(t, "instance")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
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

func classicReceived(l *ledger, m *primitive.MessageExt) {
	l.received(m.Body, m.GetKeys(), m.GetTags(), m.GetProperties())
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
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	l := newLedger(t, messageCount())
	c := classicPush(t, s, group)
	err := c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			classicReceived(l, m)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the push consumer: %v", err)
	}
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
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
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
			classicReceived(l, m)
		}
		c.ACK(context.Background(), request, consumer.ConsumeSuccess)
	}
	if err := c.Shutdown(); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.check()
}

// TestClassicGoRetry: a message that is answered with "later" goes through send-back and comes
// again as the next attempt; a second push consumer takes over what the first one left.
func TestClassicGoRetry(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	var mu sync.Mutex
	attempts := map[string][]int32{}
	done := make(chan struct{})
	c := classicPush(t, s, group)
	err := c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			body := string(m.Body)
			attempts[body] = append(attempts[body], m.ReconsumeTimes)
			if m.ReconsumeTimes == 0 {
				return consumer.ConsumeRetryLater, nil
			}
		}
		if len(attempts["a"]) == 2 && len(attempts["b"]) == 2 {
			close(done)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	p := classicProducer(t, s)
	for _, body := range []string{"a", "b"} {
		if _, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte(body))); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
	select {
	case <-done:
	case <-time.After(100 * time.Second):
	}
	mu.Lock()
	defer mu.Unlock()
	for _, body := range []string{"a", "b"} {
		if got := attempts[body]; len(got) != 2 || got[0] != 0 || got[1] != 1 {
			t.Errorf("%s was delivered with attempts %v, want [0 1]", body, got)
		}
	}
}

// TestClassicGoRebalance: two members of a group share the queues, and when one leaves the
// other takes all of them within seconds, not at its next look.
func TestClassicGoRebalance(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	received := make(chan string, 10_000)
	member := func(name string) rocketmq.PushConsumer {
		c := classicPush(t, s, group)
		err := c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for range messages {
				received <- name
			}
			return consumer.ConsumeSuccess, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
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
	first, second := member("first"), member("second")
	if !count(time.Now().Add(60*time.Second), func(got map[string]int) bool { return got["first"] > 10 && got["second"] > 10 }) {
		t.Error("two members did not share the queues")
	}
	first.Shutdown()
	if !count(time.Now().Add(60*time.Second), func(got map[string]int) bool { return got["second"] > 100 }) {
		t.Error("the second member did not go on alone")
	}
	second.Shutdown()
}
