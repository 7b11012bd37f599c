package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// TestClassicGoRequest: a producer asks, a consumer answers; one that nobody waits for is
// refused.
func TestClassicGoRequest(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := fresh(t, "topic")
	s.createTopic(t, topic, "NORMAL")
	asker, replier := classicProducer(t, s), classicProducer(t, s)
	c := classicPush(t, s, fresh(t, "group"))
	err := c.Subscribe(topic, consumer.MessageSelector{}, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			r, err := consumer.CreateReplyMessage(m, nil)
			if err != nil {
				t.Errorf("make a reply: %v", err)
				continue
			}
			r.Body = []byte("answer to " + string(m.Body)) // this client leaves the body it is given out
			if _, err := replier.SendSync(ctx, r); err != nil {
				t.Errorf("reply: %v", err)
			}
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
	// The broker knows the asker from its heartbeat, which this client sends at once only when it
	// asks in a topic that is new; nobody answers there.
	asker.Request(context.Background(), time.Second, primitive.NewMessage(fresh(t, "new"), []byte("x")))
	for i := range 10 {
		question := fmt.Sprint("question ", i)
		m, err := asker.Request(context.Background(), 30*time.Second, primitive.NewMessage(topic, []byte(question)))
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if string(m.Body) != "answer to "+question {
			t.Errorf("%s was answered with %s", question, m.Body)
		}
	}
	m := primitive.NewMessage("DefaultCluster_REPLY_TOPIC", []byte("x"))
	m.WithProperty(primitive.PropertyMsgType, "reply")
	m.WithProperty(primitive.PropertyMessageReplyToClient, "nobody@1")
	if r, err := replier.SendSync(context.Background(), m); err == nil && r.Status == primitive.SendOK {
		t.Errorf("a reply to nobody was taken: %v", r)
	}
}

// TestClassicGoTrace: what a producer with trace has sent is in the trace topic.
func TestClassicGoTrace(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := fresh(t, "topic")
	s.createTopic(t, topic, "NORMAL")
	p, err := rocketmq.NewProducer(
		producer.WithNameServer([]string{s.namesrv}),
		producer.WithGroupName(fresh(t, "producers")),
		producer.WithInstanceName(fresh(t, "instance")),
		producer.WithTrace(&primitive.TraceConfig{Access: primitive.Local, Resolver: primitive.NewPassthroughResolver([]string{s.namesrv})}))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	found := make(chan struct{}, 100)
	c := classicPush(t, s, fresh(t, "group"))
	sent, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte("x")))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Subscribe("RMQ_SYS_TRACE_TOPIC", consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			if text := string(m.Body); strings.HasPrefix(text, "Pub\x01") && strings.Contains(text, sent.MsgID) && strings.Contains(m.GetKeys(), sent.MsgID) {
				found <- struct{}{}
			}
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
	select {
	case <-found:
	case <-time.After(time.Minute):
		t.Error("no trace of the message")
	}
}
