package compat

import (
	"context"
	"strings"
	"sync"
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
	topic := fresh(t, "topic")
	s.createTopic(t, topic, "NORMAL")
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
		r, err := p.SendSync(context.Background(), batch...)
		if err != nil || r.Status != primitive.SendOK || len(strings.Split(r.OffsetMsgID, ",")) != size {
			t.Fatalf("send a batch: %v, %v", r, err)
		}
		for i, m := range batch {
			at[m.GetKeys()] = place{r.MessageQueue.QueueId, r.QueueOffset + int64(i)}
		}
	}
	var mu sync.Mutex
	got := map[string]place{}
	c := classicPush(t, s, fresh(t, "group"))
	err := c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			got[m.GetKeys()] = place{m.Queue.QueueId, m.QueueOffset}
			classicReceived(l, m)
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
	l.wait(time.Minute)
	l.check()
	mu.Lock()
	defer mu.Unlock()
	for key, want := range at {
		if got[key] != want {
			t.Errorf("%s came from %v, the answer said %v", key, got[key], want)
		}
	}
}
