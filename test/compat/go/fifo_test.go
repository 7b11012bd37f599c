package compat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// TestV5FIFO: two push consumers get each message group in its order, across one failure in it.
// Apache's server hands out several messages of a group at once, and this client goes on to the next
// when one fails.
func TestV5FIFO(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "FIFO")
	s.createGroup(t, group, 16, true)
	const each, groups = 20, 5
	var mu sync.Mutex
	got, failed, left, done := map[string][]int{}, map[string]bool{}, each*groups, make(chan struct{})
	consume := func(m *rmq.MessageView) rmq.ConsumerResult {
		n, _ := strconv.Atoi(string(m.GetBody()))
		of := *m.GetMessageGroup()
		mu.Lock()
		defer mu.Unlock()
		if n == each/2 && !failed[of] {
			failed[of] = true
			return rmq.FAILURE
		}
		got[of] = append(got[of], n)
		if left--; left == 0 {
			close(done)
		}
		return rmq.SUCCESS
	}
	for range 2 {
		defer stopLater(v5Push(t, s, group, topic, consume))
	}
	p := v5Producer(t, s, topic)
	for n := range each {
		for g := range groups {
			m := &rmq.Message{Topic: topic, Body: []byte(strconv.Itoa(n))}
			m.SetMessageGroup(fmt.Sprint("g", g))
			if _, err := p.Send(context.Background(), m); err != nil {
				t.Fatalf("send: %v", err)
			}
		}
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
	}
	mu.Lock()
	defer mu.Unlock()
	for g := range groups {
		name := fmt.Sprint("g", g)
		if i := slices.Index(got[name], each/2); s.apache && i >= 0 {
			got[name] = slices.Insert(slices.Delete(got[name], i, i+1), each/2, each/2)
		}
		inOrder(t, name, got[name], each)
	}
}

// TestClassicGoOrderly: an orderly consumer gets each queue in its order, across one suspended
// message in it.
func TestClassicGoOrderly(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "FIFO")
	s.createGroup(t, group, 16, true)
	const each, keys = 20, 5
	var mu sync.Mutex
	got, suspended, left, done := map[string][]int{}, map[string]bool{}, each*keys, make(chan struct{})
	c := classicPush(t, s, group, consumer.WithConsumerOrder(true), consumer.WithSuspendCurrentQueueTimeMillis(200*time.Millisecond),
		consumer.WithConsumeMessageBatchMaxSize(1))
	err := c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			n, _ := strconv.Atoi(string(m.Body))
			of := m.GetShardingKey()
			if n == each/2 && !suspended[of] {
				suspended[of] = true
				return consumer.SuspendCurrentQueueAMoment, nil
			}
			got[of] = append(got[of], n)
			if left--; left == 0 {
				close(done)
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
	p := classicProducer(t, s, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for n := range each {
		for k := range keys {
			m := primitive.NewMessage(topic, []byte(strconv.Itoa(n))).WithShardingKey(fmt.Sprint("k", k))
			if _, err := p.SendSync(context.Background(), m); err != nil {
				t.Fatalf("send: %v", err)
			}
		}
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
	}
	mu.Lock()
	defer mu.Unlock()
	for k := range keys {
		inOrder(t, fmt.Sprint("k", k), got[fmt.Sprint("k", k)], each)
	}
}

func inOrder(t *testing.T, name string, got []int, n int) {
	t.Helper()
	for i := range n {
		if i >= len(got) || got[i] != i || len(got) != n {
			t.Errorf("%s came as %v", name, got)
			return
		}
	}
}
