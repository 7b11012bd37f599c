package compat

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

// transactions is how many half messages a case sends: by the number modulo 4 one is committed
// at once, rolled back at once, committed when the server asks, rolled back then.
const transactions = 24

// outcome is what is seen and asked about: the ids of the messages, by number.
type outcome struct {
	seen, asked *gathered[string]
}

func newOutcome() outcome { return outcome{gather[string](), gather[string]()} }

// askedAbout notes that the server asks, and says whether the answer is to commit.
func (o outcome) askedAbout(body []byte, id string) bool {
	o.asked.add(string(body), id)
	n, _ := strconv.Atoi(string(body))
	return n%4 == 2
}

// check waits for what is committed, and a while longer for what is not.
func (o outcome) check(t *testing.T) {
	t.Helper()
	o.seen.await(t, 150*time.Second, "all that is committed", keysOf[string](transactions/2))
	time.Sleep(2 * time.Second)
	want, asked := map[string]int{}, o.asked.all()
	for n := range transactions {
		number := strconv.Itoa(n)
		if n%2 == 0 {
			want[number] = 1
		}
		if n%4 < 2 && asked[number] != nil {
			t.Errorf("asked about %d, which is decided", n)
		}
	}
	if seen := times(o.seen.all()); !maps.Equal(seen, want) {
		t.Errorf("received %v, want %v", seen, want)
	}
}

func TestV5Transactions(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, group := s.newTopic(t, "TRANSACTION"), s.newGroup(t, 16, false)
	o := newOutcome()
	p := v5Producer(t, s, topic, rmq.WithTransactionChecker(&rmq.TransactionChecker{Check: func(m *rmq.MessageView) rmq.TransactionResolution {
		if o.askedAbout(m.GetBody(), m.GetMessageId()) {
			return rmq.COMMIT
		}
		return rmq.ROLLBACK
	}}))
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
	v5Push(t, s, group, topic, func(m *rmq.MessageView) rmq.ConsumerResult {
		o.seen.add(string(m.GetBody()), m.GetMessageId())
		return rmq.SUCCESS
	})
	o.check(t)
}

// classicListener decides by the number in the body.
type classicListener struct{ o outcome }

func (l classicListener) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	n, _ := strconv.Atoi(string(m.Body))
	return []primitive.LocalTransactionState{primitive.CommitMessageState, primitive.RollbackMessageState, primitive.UnkonwnState, primitive.UnkonwnState}[n%4]
}

func (l classicListener) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	if l.o.askedAbout(m.Body, m.MsgId) {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

// classicTransactions is a producer of transactions.
func classicTransactions(t *testing.T, s server, listener primitive.TransactionListener) rocketmq.TransactionProducer {
	t.Helper()
	p, err := rocketmq.NewTransactionProducer(listener, classicProducerOptions(t, s)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatalf("start the producer: %v", err)
	}
	t.Cleanup(func() { p.Shutdown() })
	return p
}

func TestClassicGoTransactions(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic, o := s.newTopic(t, "TRANSACTION"), newOutcome()
	p := classicTransactions(t, s, classicListener{o})
	for n := range transactions {
		if _, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(topic, []byte(strconv.Itoa(n)))); err != nil {
			t.Fatalf("half message %d: %v", n, err)
		}
	}
	classicPush(t, s, fresh(t, "group"), topic, func(m *primitive.MessageExt) consumer.ConsumeResult {
		o.seen.add(string(m.Body), m.MsgId)
		return consumer.ConsumeSuccess
	})
	o.check(t)
}
