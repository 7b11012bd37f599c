package compat

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// transactions is how many half messages a case sends: by the number modulo 4 one is committed
// at once, rolled back at once, committed when the server asks, rolled back then.
const transactions = 24

// outcome is what is seen and asked about.
type outcome struct {
	mu          sync.Mutex
	seen, asked map[int]int
}

func newOutcome() *outcome { return &outcome{seen: map[int]int{}, asked: map[int]int{}} }

func (o *outcome) note(of map[int]int, body []byte) int {
	n, _ := strconv.Atoi(string(body))
	o.mu.Lock()
	of[n]++
	o.mu.Unlock()
	return n
}

// wait waits for what is committed, and a while longer for what is not.
func (o *outcome) wait(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(150 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		o.mu.Lock()
		done := len(o.seen) >= transactions/2
		o.mu.Unlock()
		if done {
			break
		}
	}
	time.Sleep(2 * time.Second)
	o.mu.Lock()
	defer o.mu.Unlock()
	want := map[int]int{}
	for n := range transactions {
		if n%2 == 0 {
			want[n] = 1
		}
	}
	if !maps.Equal(o.seen, want) {
		t.Errorf("received %v, want %v", o.seen, slices.Sorted(maps.Keys(want)))
	}
	for n := range o.asked {
		if n%4 < 2 {
			t.Errorf("asked about %d, which is decided", n)
		}
	}
}

func TestV5Transactions(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "TRANSACTION")
	s.createGroup(t, group, 16, false)
	o := newOutcome()
	p, err := rmq.NewProducer(v5Config(s, ""), rmq.WithTopics(topic), rmq.WithTransactionChecker(&rmq.TransactionChecker{
		Check: func(m *rmq.MessageView) rmq.TransactionResolution {
			if o.note(o.asked, m.GetBody())%4 == 2 {
				return rmq.COMMIT
			}
			return rmq.ROLLBACK
		}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	defer p.GracefulStop()
	for n := range transactions {
		tx := p.BeginTransaction()
		if _, err := p.SendWithTransaction(context.Background(), &rmq.Message{Topic: topic, Body: []byte(strconv.Itoa(n))}, tx); err != nil {
			t.Fatalf("half message %d: %v", n, err)
		}
		var err error
		switch n % 4 {
		case 0:
			err = tx.Commit()
		case 1:
			err = tx.RollBack()
		}
		if err != nil {
			t.Errorf("decision of %d: %v", n, err)
		}
	}
	c := v5Push(t, s, group, topic, func(m *rmq.MessageView) rmq.ConsumerResult {
		o.note(o.seen, m.GetBody())
		return rmq.SUCCESS
	})
	defer stopLater(c)
	o.wait(t)
}

// classicListener decides by the number in the body.
type classicListener struct{ o *outcome }

func (l classicListener) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	n, _ := strconv.Atoi(string(m.Body))
	return []primitive.LocalTransactionState{primitive.CommitMessageState, primitive.RollbackMessageState, primitive.UnkonwnState, primitive.UnkonwnState}[n%4]
}

func (l classicListener) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	if l.o.note(l.o.asked, m.Body)%4 == 2 {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func TestClassicGoTransactions(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := fresh(t, "topic"), fresh(t, "group")
	s.createTopic(t, topic, "TRANSACTION")
	o := newOutcome()
	p, err := rocketmq.NewTransactionProducer(classicListener{o}, producer.WithNameServer([]string{s.namesrv}),
		producer.WithGroupName(fresh(t, "producers")), producer.WithInstanceName(fresh(t, "instance")), producer.WithRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	defer p.Shutdown()
	for n := range transactions {
		if _, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(topic, []byte(strconv.Itoa(n)))); err != nil {
			t.Fatalf("half message %d: %v", n, err)
		}
	}
	c := classicPush(t, s, group)
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, list ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range list {
			o.note(o.seen, m.Body)
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
	o.wait(t)
}
