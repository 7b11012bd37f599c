package compat

import (
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

// A series is so many numbered messages that have the same message group, or sharding key. The series
// are sent in turns.
const seriesLength = 20

var seriesNames = []string{"g0", "g1", "g2", "g3", "g4"}

// inSeries is what consumers take of the series; the message in the middle of each fails once.
type inSeries struct {
	got    *gathered[int]
	mu     sync.Mutex
	failed map[string]bool
}

func newInSeries() *inSeries { return &inSeries{got: gather[int](), failed: map[string]bool{}} }

// takes says whether this delivery succeeds.
func (in *inSeries) takes(of string, body []byte) bool {
	n, _ := strconv.Atoi(string(body))
	in.mu.Lock()
	defer in.mu.Unlock()
	if n == seriesLength/2 && !in.failed[of] {
		in.failed[of] = true
		return false
	}
	in.got.add(of, n)
	return true
}

// await waits for all series.
func (in *inSeries) await(t *testing.T) map[string][]int {
	t.Helper()
	return in.got.await(t, 2*time.Minute, "all come", func(all map[string][]int) bool {
		return !slices.ContainsFunc(seriesNames, func(of string) bool { return len(all[of]) < seriesLength })
	})
}

// eachInSeries calls send for each message of all series.
func eachInSeries(send func(of string, body []byte)) {
	for n := range seriesLength {
		for _, of := range seriesNames {
			send(of, []byte(strconv.Itoa(n)))
		}
	}
}

func inOrder(t *testing.T, all map[string][]int) {
	t.Helper()
	var want []int
	for n := range seriesLength {
		want = append(want, n)
	}
	for _, of := range seriesNames {
		if !slices.Equal(all[of], want) {
			t.Errorf("%s came as %v", of, all[of])
		}
	}
}

// TestV5FIFO: two push consumers get each message group in its order, across one failure in it.
// Apache's server hands out several messages of a group at once, and this client goes on to the next
// when one fails.
func TestV5FIFO(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "FIFO"), s.newGroup(t, 16, true)
	in := newInSeries()
	for range 2 {
		v5Push(t, s, group, topic, func(m *rmq.MessageView) rmq.ConsumerResult {
			if !in.takes(*m.GetMessageGroup(), m.GetBody()) {
				return rmq.FAILURE
			}
			return rmq.SUCCESS
		})
	}
	p := v5Producer(t, s, topic)
	eachInSeries(func(of string, body []byte) {
		m := &rmq.Message{Topic: topic, Body: body}
		m.SetMessageGroup(of)
		v5Send(t, p, m)
	})
	all := in.await(t)
	for of, got := range all {
		if i := slices.Index(got, seriesLength/2); s.apache && i >= 0 {
			all[of] = slices.Insert(slices.Delete(got, i, i+1), seriesLength/2, seriesLength/2)
		}
	}
	inOrder(t, all)
}

// TestClassicGoOrderly: an orderly consumer gets each queue in its order, across one suspended
// message in it.
func TestClassicGoOrderly(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "FIFO"), s.newGroup(t, 16, true)
	in := newInSeries()
	classicPush(t, s, group, topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		if !in.takes(m.GetShardingKey(), m.Body) {
			return consumer.SuspendCurrentQueueAMoment
		}
		return consumer.ConsumeSuccess
	}, consumer.WithConsumerOrder(true), consumer.WithSuspendCurrentQueueTimeMillis(200*time.Millisecond))
	p := classicProducer(t, s, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	eachInSeries(func(of string, body []byte) {
		classicSend(t, p, primitive.NewMessage(topic, body).WithShardingKey(of))
	})
	inOrder(t, in.await(t))
}
