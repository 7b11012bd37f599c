package compat

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

var topicTypes = []string{"NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE"}

// TestV5TopicTypes: a topic takes messages of its own type alone.
func TestV5TopicTypes(t *testing.T) {
	t.Parallel()
	s := target(t)
	kinds := map[string]func(*rmq.Message){
		"NORMAL":   func(*rmq.Message) {},
		"FIFO":     func(m *rmq.Message) { m.SetMessageGroup("g") },
		"DELAY":    func(m *rmq.Message) { m.SetDelayTimestamp(time.Now().Add(time.Second)) },
		"PRIORITY": func(m *rmq.Message) { m.SetPriority(1) },
		"LITE":     func(m *rmq.Message) { m.SetLiteTopic("l") },
	}
	for _, of := range topicTypes {
		topic := s.newTopic(t, of)
		p := v5Producer(t, s, topic)
		for kind, set := range kinds {
			m := &rmq.Message{Topic: topic, Body: []byte("x")}
			set(m)
			if _, err := p.Send(context.Background(), m); (err == nil) != (kind == of) {
				t.Errorf("a %s message to a %s topic: %v", kind, of, err)
			}
		}
	}
}

// TestClassicGoTopicTypes: this client does not ask for the type of a topic, and the broker takes
// and delivers each kind of message in a topic of each type. Types hold for gRPC.
func TestClassicGoTopicTypes(t *testing.T) {
	t.Parallel()
	s := target(t)
	p, halves := classicProducer(t, s), classicTransactions(t, s, classicListener{newOutcome()})
	got := map[string]*gathered[string]{}
	for _, of := range topicTypes {
		topic, in := s.newTopic(t, of), gather[string]()
		classicPush(t, s, fresh(t, "group"), topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
			in.add(string(m.Body), m.MsgId)
			return consumer.ConsumeSuccess
		})
		classicSend(t, p, primitive.NewMessage(topic, []byte("NORMAL")))
		classicSend(t, p, primitive.NewMessage(topic, []byte("FIFO")).WithShardingKey("g"))
		classicSend(t, p, primitive.NewMessage(topic, []byte("DELAY")).WithDelayTimeLevel(1))
		half := primitive.NewMessage(topic, []byte("0")) // which is committed
		if _, err := halves.SendMessageInTransaction(context.Background(), half); err != nil {
			t.Fatalf("a half message to a %s topic: %v", of, err)
		}
		got[of] = in
	}
	want := map[string]int{"NORMAL": 1, "FIFO": 1, "DELAY": 1, "0": 1}
	for of, in := range got {
		all := in.await(t, time.Minute, "each kind of message comes from a "+of+" topic", keysOf[string](len(want)))
		if !maps.Equal(times(all), want) {
			t.Errorf("of a %s topic came %v", of, all)
		}
	}
}
