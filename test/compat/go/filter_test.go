package compat

import (
	"strconv"
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

func filterTakes(seq int) bool { return seq >= 50 && seq <= 149 && seq%3 != 0 }

// checkFiltered waits for what the filter takes. The keys of what came are the numbers.
func checkFiltered(t *testing.T, got *gathered[string]) {
	t.Helper()
	want := map[string]bool{}
	for seq := range filterSamples {
		if filterTakes(seq) {
			want[strconv.Itoa(seq)] = true
		}
	}
	for number := range got.await(t, 2*time.Minute, "all that the filter takes", keysOf[string](len(want))) {
		if !want[number] {
			t.Errorf("received message %s, which the filter does not take", number)
		}
	}
}

// TestClassicGoSQL92 receives by an SQL92 filter with a push consumer that waits already.
func TestClassicGoSQL92(t *testing.T) {
	s := target(t)
	topic, got := s.newTopic(t, "NORMAL"), gather[string]()
	filter := consumer.MessageSelector{Type: consumer.SQL92, Expression: filterText}
	classicPushOf(t, s, fresh(t, "group"), topic, filter, func(m *primitive.MessageExt) consumer.ConsumeResult {
		got.add(m.GetProperty("number"), m.MsgId)
		return consumer.ConsumeSuccess
	})
	classicSendAll(newLedger(t, filterSamples), classicProducer(t, s), topic)
	checkFiltered(t, got)
}

// TestV5SQL92 receives by an SQL92 filter with a push consumer of the gRPC client.
func TestV5SQL92(t *testing.T) {
	s := target(t)
	topic, group, got := s.newTopic(t, "NORMAL"), s.newGroup(t, 16, false), gather[string]()
	filter := rmq.NewFilterExpressionWithType(filterText, rmq.SQL92)
	v5PushOf(t, s, group, topic, filter, func(mv *rmq.MessageView) rmq.ConsumerResult {
		got.add(mv.GetProperties()["number"], mv.GetMessageId())
		return rmq.SUCCESS
	})
	v5SendAll(newLedger(t, filterSamples), v5Producer(t, s, topic), topic)
	checkFiltered(t, got)
}
