package compat

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// TestClassicGoBatch: one answer names all messages of a batch, which are at consecutive
// offsets of one queue, and come each for itself.
func TestClassicGoBatch(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "NORMAL")
	const size, batches = 10, 5
	l := newLedger(t, size*batches)
	p := classicProducer(t, s)
	type place struct {
		queue  int
		offset int64
	}
	at := map[string]place{} // by key
	for from := 0; from < l.expected; from += size {
		var batch []*primitive.Message
		for seq := from; seq < from+size; seq++ {
			batch = append(batch, classicMessage(topic, newSample(seq)))
		}
		r := classicSend(t, p, batch...)
		if len(strings.Split(r.OffsetMsgID, ",")) != size {
			t.Fatalf("a batch of %d is answered with %v", size, r)
		}
		for i, m := range batch {
			at[m.GetKeys()] = place{r.MessageQueue.QueueId, r.QueueOffset + int64(i)}
		}
	}
	got := gather[place]()
	classicPush(t, s, fresh(t, "group"), topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		got.add(m.GetKeys(), place{m.Queue.QueueId, m.QueueOffset})
		return l.classic(m)
	})
	l.wait(time.Minute)
	l.check()
	for key, places := range got.all() {
		if places[0] != at[key] {
			t.Errorf("%s came from %v, the answer said %v", key, places[0], at[key])
		}
	}
}
