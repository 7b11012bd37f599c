package compat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// createLite makes a topic that has lite topics, and a group that is bound to it.
func (s server) createLite(t *testing.T, attributes string) (topic, group string) {
	t.Helper()
	topic, group = fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "LITE")
	body := fmt.Sprintf(`{"groupName":%q,"consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,`+
		`"consumeMessageOrderly":false,"retryQueueNums":1,"retryMaxTimes":16,"brokerId":0,"whichBrokerWhenConsumeSlowly":1,`+
		`"notifyConsumerIdsChangedEnable":true,"groupSysFlag":0,"consumeTimeoutMinute":15,"attributes":{"+lite.bind.topic":%q%s}}`, group, topic, attributes)
	a, err := ask(s.broker, 200, nil, []byte(body))
	if err != nil || a.Code != 0 {
		t.Fatalf("create group %s: %v, code %d %q", group, err, a.Code, a.Remark)
	}
	return topic, group
}

// litePush consumes lite topics with a push consumer, and notes the bodies by lite topic.
type litePush struct {
	rmq.LitePushConsumer
	mu    sync.Mutex
	got   map[string][]string
	fresh chan struct{}
}

func newLitePush(t *testing.T, s server, topic, group string, consume func(m *rmq.MessageView) rmq.ConsumerResult) *litePush {
	t.Helper()
	c := &litePush{got: map[string][]string{}, fresh: make(chan struct{}, 1)}
	var err error
	c.LitePushConsumer, err = rmq.NewLitePushConsumer(v5Config(s, group), rmq.NewLitePushConsumerConfig(topic, 30*time.Second),
		rmq.WithPushAwaitDuration(5*time.Second), rmq.WithPushConsumptionThreadCount(8),
		rmq.WithPushMessageListener(whileRunning(t, func(m *rmq.MessageView) rmq.ConsumerResult {
			if r := consume(m); r != rmq.SUCCESS {
				return r
			}
			c.mu.Lock()
			lite := m.GetLiteTopic()
			c.got[lite] = append(c.got[lite], string(m.GetBody()))
			c.mu.Unlock()
			select {
			case c.fresh <- struct{}{}:
			default:
			}
			return rmq.SUCCESS
		})))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the lite push consumer: %v", err)
	}
	t.Cleanup(func() { stopLater(c) })
	return c
}

// await returns when lite has n messages.
func (c *litePush) await(t *testing.T, lite string, n int) []string {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		c.mu.Lock()
		got := slices.Clone(c.got[lite])
		c.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-c.fresh:
		case <-limit:
			t.Fatalf("%s has %d messages, want %d", lite, len(got), n)
		}
	}
}

// TestV5Lite: a lite push consumer gets the messages of the lite topics that it has subscribed
// to, of each in order, and of no other; one that fails comes again.
func TestV5Lite(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.createLite(t, "")
	p := v5Producer(t, s, topic)
	send := func(lite string, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			m := &rmq.Message{Topic: topic, Body: []byte(strconv.Itoa(i))}
			m.SetLiteTopic(lite)
			if _, err := p.Send(context.Background(), m); err != nil {
				t.Fatalf("send to %s: %v", lite, err)
			}
		}
	}
	var mu sync.Mutex
	failed := map[string]bool{}
	c := newLitePush(t, s, topic, group, func(m *rmq.MessageView) rmq.ConsumerResult {
		mu.Lock()
		defer mu.Unlock()
		if string(m.GetBody()) == "3" && !failed[m.GetLiteTopic()] {
			failed[m.GetLiteTopic()] = true
			return rmq.FAILURE
		}
		return rmq.SUCCESS
	})
	lites := []string{"l0", "l1", "l2", "l3"}
	for _, lite := range lites {
		if err := c.SubscribeLite(lite); err != nil {
			t.Fatalf("subscribe to %s: %v", lite, err)
		}
	}
	const n = 10
	for _, lite := range append(lites, "other") {
		send(lite, 0, n)
	}
	var want []string
	for i := range n {
		want = append(want, strconv.Itoa(i))
	}
	for _, lite := range lites {
		// What was received with the one that failed is consumed before that comes again.
		got := c.await(t, lite, n)
		if i := slices.Index(got, "3"); i >= 0 {
			got = slices.Insert(slices.Delete(got, i, i+1), 3, "3")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", lite, got)
		}
	}
	if err := c.UnSubscribeLite("l0"); err != nil {
		t.Fatal(err)
	}
	send("l0", n, n+1)
	send("l1", n, n+1)
	c.await(t, "l1", n+1)
	c.mu.Lock()
	if len(c.got["l0"]) != n || len(c.got["other"]) != 0 {
		t.Errorf("not subscribed to: %v, %v", c.got["l0"], c.got["other"])
	}
	c.mu.Unlock()
	// Whoever subscribes again goes on where the group was.
	if err := c.SubscribeLite("l0"); err != nil {
		t.Fatal(err)
	}
	if got := c.await(t, "l0", n+1); got[n] != strconv.Itoa(n) {
		t.Errorf("after a while without: %v", got)
	}
}
