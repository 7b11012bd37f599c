package compat

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// TestClassicGoRequest: a producer asks, a consumer answers; one that nobody waits for is
// refused.
func TestClassicGoRequest(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "NORMAL")
	asker, replier := classicProducer(t, s), classicProducer(t, s)
	classicPush(t, s, fresh(t, "group"), topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		r, err := consumer.CreateReplyMessage(m, nil)
		if err != nil {
			t.Errorf("make a reply: %v", err)
			return consumer.ConsumeSuccess
		}
		r.Body = []byte("answer to " + string(m.Body)) // this client leaves the body it is given out
		if _, err := replier.SendSync(context.Background(), r); err != nil {
			t.Errorf("reply: %v", err)
		}
		return consumer.ConsumeSuccess
	})
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
