package compat

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// TestClassicGoTrace: what a producer and a consumer with trace did with a message is in the
// trace topic, where it is found by the message's id and can be read.
func TestClassicGoTrace(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group, producers := s.newTopic(t, "NORMAL"), fresh(t, "group"), fresh(t, "producers")
	trace := func() *primitive.TraceConfig {
		return &primitive.TraceConfig{Access: primitive.Local, Resolver: primitive.NewPassthroughResolver([]string{s.namesrv})}
	}
	p := classicProducer(t, s, producer.WithGroupName(producers), producer.WithTrace(trace()))
	classicPush(t, s, group, topic, func(*primitive.MessageExt) consumer.ConsumeResult {
		return consumer.ConsumeSuccess
	}, consumer.WithTrace(trace()))
	sent := classicSend(t, p, primitive.NewMessage(topic, []byte("body")).WithTag("tag").WithKeys([]string{"key"}))

	records := make(chan []string, 100)
	classicPush(t, s, fresh(t, "reader"), "RMQ_SYS_TRACE_TOPIC", func(m *primitive.MessageExt) consumer.ConsumeResult {
		if !slices.Contains(strings.Fields(m.GetKeys()), sent.MsgID) {
			return consumer.ConsumeSuccess
		}
		for _, record := range strings.Split(strings.TrimSuffix(string(m.Body), "\x02"), "\x02") {
			if fields := strings.Split(record, "\x01"); slices.Contains(fields, sent.MsgID) {
				records <- fields
			}
		}
		return consumer.ConsumeSuccess
	})

	// What each kind of record says, by the number of the field.
	want := map[string]map[int]string{
		"Pub":       {3: producers, 4: topic, 5: sent.MsgID, 6: "tag", 7: "key", 9: "4", 12: sent.OffsetMsgID, 13: "true"},
		"SubBefore": {3: group, 5: sent.MsgID, 6: "0", 7: "key"},
		"SubAfter":  {2: sent.MsgID, 4: "true", 5: "key", 8: group},
	}
	limit := time.After(time.Minute)
	for len(want) > 0 {
		select {
		case fields := <-records:
			for i, value := range want[fields[0]] {
				if i >= len(fields) || fields[i] != value {
					t.Errorf("%q: field %d is not %s", fields, i, value)
				}
			}
			delete(want, fields[0])
		case <-limit:
			t.Fatalf("no record of %v", want)
		}
	}
}
