package compat

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "compat-logs-")
	if err != nil {
		panic(err)
	}
	os.Setenv("rocketmq.client.logRoot", dir)
	rmq.ResetLogger()
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// whileRunning is a listener that tells nothing any more when its test is over: what comes while
// the consumer stops is nobody's.
func whileRunning(t *testing.T, consume func(*rmq.MessageView) rmq.ConsumerResult) *rmq.FuncMessageListener {
	return &rmq.FuncMessageListener{Consume: func(mv *rmq.MessageView) rmq.ConsumerResult {
		if t.Context().Err() != nil {
			return rmq.FAILURE
		}
		return consume(mv)
	}}
}

// stopLater stops a consumer that its test needs no more. A push consumer waits for the end of its
// long poll; nobody waits for that.
func stopLater(c interface{ GracefulStop() error }) { go c.GracefulStop() }

func v5Config(s server, group string) *rmq.Config {
	return &rmq.Config{Endpoint: s.grpc, ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func v5Producer(t *testing.T, s server, topic string, options ...rmq.ProducerOption) rmq.Producer {
	t.Helper()
	p, err := rmq.NewProducer(v5Config(s, ""), append(options, rmq.WithTopics(topic))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	t.Cleanup(func() { p.GracefulStop() })
	return p
}

// v5Send sends one message.
func v5Send(t *testing.T, p rmq.Producer, m *rmq.Message) *rmq.SendReceipt {
	t.Helper()
	receipts, err := p.Send(context.Background(), m)
	if err != nil || len(receipts) != 1 {
		t.Fatalf("send: %v, %v", receipts, err)
	}
	return receipts[0]
}

// v5Simple starts a simple consumer of all messages of a topic, for as long as its test runs.
func v5Simple(t *testing.T, s server, group, topic string) rmq.SimpleConsumer {
	t.Helper()
	c, err := rmq.NewSimpleConsumer(v5Config(s, group),
		rmq.WithSimpleAwaitDuration(5*time.Second),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the simple consumer: %v", err)
	}
	t.Cleanup(func() { stopLater(c) })
	return c
}

// v5Push starts a push consumer of all messages of a topic, for as long as its test runs.
func v5Push(t *testing.T, s server, group, topic string, consume func(*rmq.MessageView) rmq.ConsumerResult) rmq.PushConsumer {
	t.Helper()
	return v5PushOf(t, s, group, topic, rmq.SUB_ALL, consume)
}

func v5PushOf(t *testing.T, s server, group, topic string, filter *rmq.FilterExpression, consume func(*rmq.MessageView) rmq.ConsumerResult) rmq.PushConsumer {
	t.Helper()
	c, err := rmq.NewPushConsumer(v5Config(s, group),
		rmq.WithPushAwaitDuration(5*time.Second),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: filter}),
		rmq.WithPushConsumptionThreadCount(16),
		rmq.WithPushMaxCacheMessageCount(1024),
		rmq.WithPushMessageListener(whileRunning(t, consume)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the push consumer: %v", err)
	}
	t.Cleanup(func() { stopLater(c) })
	return c
}

func v5Message(topic string, s sample) *rmq.Message {
	m := &rmq.Message{Topic: topic, Body: s.body}
	m.SetKeys(s.key)
	m.SetTag(s.tag)
	for name, value := range s.properties {
		m.AddProperty(name, value)
	}
	return m
}

func v5Received(l *ledger, mv *rmq.MessageView) {
	key, tag := "", ""
	if keys := mv.GetKeys(); len(keys) == 1 {
		key = keys[0]
	}
	if mv.GetTag() != nil {
		tag = *mv.GetTag()
	}
	l.received(mv.GetBody(), key, tag, mv.GetProperties())
}

func v5SendAll(l *ledger, p rmq.Producer, topic string) {
	l.sendAll(32, func(s sample) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := p.Send(ctx, v5Message(topic, s))
		return err
	})
}

// TestV5SimpleConsumer sends with the gRPC producer, receives and acknowledges with a simple
// consumer, as in the second program of article 001.
func TestV5SimpleConsumer(t *testing.T) {
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
	l := newLedger(t, messageCount())
	c := v5Simple(t, s, group, topic)

	ctx, cancel := context.WithCancel(context.Background())
	var receivers sync.WaitGroup
	for range 4 {
		receivers.Go(func() {
			for ctx.Err() == nil {
				messages, err := c.Receive(ctx, 32, 60*time.Second)
				if err != nil {
					continue // nothing new, or the end
				}
				for _, mv := range messages {
					v5Received(l, mv)
					if err := c.Ack(context.Background(), mv); err != nil {
						t.Errorf("ack: %v", err)
					}
				}
			}
		})
	}
	v5SendAll(l, v5Producer(t, s, topic), topic)
	l.wait(3 * time.Minute)
	cancel()
	receivers.Wait()
	if err := c.GracefulStop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.check()
}

// TestV5PushConsumer does the same with a push consumer, the first program of article 001. Its stop
// waits for the end of a long poll, beside other cases.
func TestV5PushConsumer(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
	l := newLedger(t, messageCount())
	c := v5Push(t, s, group, topic, func(mv *rmq.MessageView) rmq.ConsumerResult {
		v5Received(l, mv)
		return rmq.SUCCESS
	})
	v5SendAll(l, v5Producer(t, s, topic), topic)
	l.wait(3 * time.Minute)
	if err := c.GracefulStop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	l.check()
}

// TestV5AsyncSends: each is answered, and what was sent is there.
func TestV5AsyncSends(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false)
	l := newLedger(t, 200)
	v5Push(t, s, group, topic, func(mv *rmq.MessageView) rmq.ConsumerResult {
		v5Received(l, mv)
		return rmq.SUCCESS
	})
	p := v5Producer(t, s, topic)
	l.sendAll(16, func(m sample) error {
		answer := make(chan error, 1)
		p.SendAsync(context.Background(), v5Message(topic, m), func(_ context.Context, receipts []*rmq.SendReceipt, err error) {
			if err == nil && (len(receipts) != 1 || receipts[0].MessageID == "") {
				t.Errorf("message %d was answered with %v", m.seq, receipts)
			}
			answer <- err
		})
		return <-answer
	})
	l.wait(time.Minute)
	l.check()
}
