package compat

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// The SQL92 filter of these tests, and what it takes of so many samples.
const (
	filterText    = "number BETWEEN 50 AND 149 AND TAGS <> 'tag0' AND absent IS NULL"
	filterSamples = 300
)

// sieve collects what a consumer with filterText gets.
type sieve struct {
	mu       sync.Mutex
	got      map[int]bool
	complete chan struct{}
}

func filterTakes(seq int) bool { return seq >= 50 && seq <= 149 && seq%3 != 0 }

func newSieve() *sieve { return &sieve{got: map[int]bool{}, complete: make(chan struct{})} }

// received is the property number of a delivered message.
func (s *sieve) received(number string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := strconv.Atoi(number)
	if err != nil {
		n = -1
	}
	before := len(s.got)
	if s.got[n] = true; len(s.got) == s.wanted() && before < len(s.got) {
		close(s.complete)
	}
}

func (s *sieve) wanted() (n int) {
	for seq := range filterSamples {
		if filterTakes(seq) {
			n++
		}
	}
	return n
}

func (s *sieve) check(t *testing.T) {
	t.Helper()
	select {
	case <-s.complete:
	case <-time.After(2 * time.Minute):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []int
	for n := range s.got {
		got = append(got, n)
		if !filterTakes(n) {
			t.Errorf("received message %d, which the filter does not take", n)
		}
	}
	if len(got) != s.wanted() {
		slices.Sort(got)
		t.Errorf("received %d messages, want %d: %v", len(got), s.wanted(), got)
	}
}

// TestClassicGoSQL92 receives by an SQL92 filter with a push consumer that waits already.
func TestClassicGoSQL92(t *testing.T) {
	s := target(t)
	topic := fresh(t, "topic")
	s.createTopic(t, topic, "NORMAL")
	in := newSieve()
	c := classicPush(t, s, fresh(t, "group"))
	err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.SQL92, Expression: filterText},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, m := range messages {
				in.received(m.GetProperty("number"))
			}
			return consumer.ConsumeSuccess, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the push consumer: %v", err)
	}
	classicSendAll(newLedger(t, filterSamples), classicProducer(t, s), topic)
	in.check(t)
	if err := c.Shutdown(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestV5SQL92 receives by an SQL92 filter with a push consumer of the gRPC client.
func TestV5SQL92(t *testing.T) {
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "NORMAL")
	s.createGroup(t, group, 16, false)
	in := newSieve()
	c, err := rmq.NewPushConsumer(v5Config(s, group),
		rmq.WithPushAwaitDuration(5*time.Second),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.NewFilterExpressionWithType(filterText, rmq.SQL92)}),
		rmq.WithPushConsumptionThreadCount(4),
		rmq.WithPushMaxCacheMessageCount(1024),
		rmq.WithPushMessageListener(whileRunning(t, func(mv *rmq.MessageView) rmq.ConsumerResult {
			in.received(mv.GetProperties()["number"])
			return rmq.SUCCESS
		})))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatalf("start the push consumer: %v", err)
	}
	defer stopLater(c)
	v5SendAll(newLedger(t, filterSamples), v5Producer(t, s, topic), topic)
	in.check(t)
}
