package compat

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// newLitePush starts a push consumer of lite topics, for as long as its test runs. The bodies of what it
// succeeds with are noted by lite topic.
func newLitePush(t *testing.T, s server, topic, group string, consume func(m *rmq.MessageView) rmq.ConsumerResult) (rmq.LitePushConsumer, *gathered[string]) {
	t.Helper()
	got := gather[string]()
	c, err := rmq.NewLitePushConsumer(v5Config(s, group), rmq.NewLitePushConsumerConfig(topic, 30*time.Second),
		rmq.WithPushAwaitDuration(5*time.Second), rmq.WithPushConsumptionThreadCount(8),
		rmq.WithPushMessageListener(whileRunning(t, func(m *rmq.MessageView) rmq.ConsumerResult {
			r := consume(m)
			if r == rmq.SUCCESS {
				got.add(m.GetLiteTopic(), string(m.GetBody()))
			}
			return r
		})))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the lite push consumer: %v", err)
	}
	t.Cleanup(func() { stopLater(c) })
	return c, got
}

// TestV5Lite: a lite push consumer gets the messages of the lite topics that it has subscribed
// to, of each in order, and of no other; one that fails comes again.
func TestV5Lite(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "LITE")
	p := v5Producer(t, s, topic)
	send := func(lite string, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			m := &rmq.Message{Topic: topic, Body: []byte(strconv.Itoa(i))}
			m.SetLiteTopic(lite)
			v5Send(t, p, m)
		}
	}
	var mu sync.Mutex
	failed := map[string]bool{}
	c, got := newLitePush(t, s, topic, s.newLiteGroup(t, topic), func(m *rmq.MessageView) rmq.ConsumerResult {
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
	await := func(lite string, n int) []string {
		t.Helper()
		return got.await(t, time.Minute, fmt.Sprintf("%s gives %d", lite, n), func(all map[string][]string) bool { return len(all[lite]) >= n })[lite]
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
		got := await(lite, n)
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
	await("l1", n+1)
	if all := got.all(); len(all["l0"]) != n || len(all["other"]) != 0 {
		t.Errorf("not subscribed to: %v, %v", all["l0"], all["other"])
	}
	// Whoever subscribes again goes on where the group was.
	if err := c.SubscribeLite("l0"); err != nil {
		t.Fatal(err)
	}
	if got := await("l0", n+1); got[n] != strconv.Itoa(n) {
		t.Errorf("after a while without: %v", got)
	}
}
