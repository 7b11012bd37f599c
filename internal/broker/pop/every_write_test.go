package pop_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// TestEveryWrite crashes a whole broker before each of the writes of a short life in which
// messages go every way that there is: acknowledged, in both batch forms, extended, handed
// back, lapsed into the retry topic and from there to the dead letters, forwarded, moved
// in order. So a crash comes between any two steps of a move (P6). Its recovery is crashed
// as well, and then everything that was promised must hold, and each message be in one
// place. Power is cut under synchronous flush, the process killed under the other (R003,
// R006, R013, R018).
func TestEveryWrite(t *testing.T) {
	brokertest.EveryWrite(t, brokertest.Options{}, func(l *brokertest.Life) brokertest.Course {
		return &life{Life: l, stored: map[string]bool{}, acked: map[string]bool{}, forwarded: map[string]bool{}, asked: map[string]bool{}}
	})
}

// life is one life of a broker, and what it promised before its end.
type life struct {
	*brokertest.Life
	stored, acked, forwarded map[string]bool
	asked                    map[string]bool // to be acknowledged or forwarded, with whatever answer
}

// Prepare makes the topics.
func (l *life) Prepare(b *brokertest.Broker) {
	l.create(b, "t", "")
	l.create(b, "f", "FIFO")
}

func (l *life) create(b *brokertest.Broker, name, kind string) {
	cfg := topic.New(name)
	cfg.ReadQueues, cfg.WriteQueues = 1, 1
	if kind != "" {
		cfg.Attributes = map[string]string{"+message.type": kind}
	}
	if err := b.Topics.Put(cfg); err != nil {
		l.Fatal(err)
	}
	g, err := b.Groups.GetOrCreate("g")
	if err != nil {
		l.Fatal(err)
	}
	g = g.Clone()
	g.RetryMaxTimes = 1
	if err := b.Groups.Put(g); err != nil {
		l.Fatal(err)
	}
}

// promise notes what was answered before the end.
func (l *life) promise(kept map[string]bool, id string, err error) {
	if err == nil && !l.Over() {
		kept[id] = true
	}
}

// Live is the short life. After its end it goes on without being believed.
func (l *life) Live(b *brokertest.Broker) {
	l.send(b, "t", 1, 8)
	l.send(b, "f", 9, 11)
	got := l.pop(b, "t", 6, 60_000)
	if len(got) != 6 {
		l.Fatalf("write %d: %d messages", l.At, len(got))
	}
	l.ack(b, "t", got[0])
	l.change(b, "t", &got[1], 30_000)
	l.change(b, "t", &got[2], 0)
	l.forward(b, "t", got[3])
	l.ackBatch(b, "t", got[4:5])
	// got[5] is left alone. The order goes on in place, and then to the dead letters.
	first := l.pop(b, "f", 1, 1000)
	b.Clock.Advance(time.Second)
	l.pop(b, "f", 1, 1000)
	b.Clock.Advance(time.Second)
	l.await(b, names.DeadLetter("g"), first[0].id)
	second := l.pop(b, "f", 1, 60_000)
	l.ack(b, "f", second[0])
	// The one handed back comes as a retry, is acknowledged in the second form, and what
	// was left alone lapses twice.
	l.await(b, names.PopRetryV1("t", "g"), got[2].id)
	l.ackBits(b, "t", l.retry(b, got[2].id, 60_000))
	b.Clock.Advance(time.Minute)
	l.await(b, names.PopRetryV1("t", "g"), got[5].id)
	l.retry(b, got[5].id, 1000)
	b.Clock.Advance(time.Second)
	l.await(b, names.DeadLetter("g"), got[5].id)
	for _, d := range l.pop(b, "t", 32, 60_000) {
		l.ack(b, "t", d)
	}
}

func (l *life) send(b *brokertest.Broker, topic string, from, to int) {
	for i := from; i <= to; i++ {
		id := fmt.Sprint("m", i)
		done := make(chan error, 1)
		b.Publish.Publish(&message.Message{
			Topic: topic, Body: []byte(id + strings.Repeat(".", 700)),
			BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
		}, func(_ storage.Placed, err error) { done <- err })
		l.promise(l.stored, id, <-done)
	}
	l.await(b, topic, fmt.Sprint("m", to))
}

type lent struct {
	id     string
	handle receipt.Handle
}

func (l *life) pop(b *brokertest.Broker, topic string, n int, invisible int64) (got []lent) {
	done := make(chan struct{})
	b.Pop.Pop(pop.Request{Group: "g", Topic: topic, QueueID: -1, Max: n, Invisible: invisible}, func(res pop.Result, err error) {
		defer close(done)
		if err != nil {
			l.Error(err)
		}
		for i := range res.Batches {
			batch := &res.Batches[i]
			for j := range batch.Records {
				var m message.Message
				if _, err := message.DecodeStored(batch.Records[j].Bytes, &m); err != nil {
					l.Error(err)
				}
				id, _, _ := strings.Cut(string(m.Body), ".")
				got = append(got, lent{id, res.Handle(batch, &batch.Records[j], "b")})
			}
		}
		res.Release()
	})
	<-done
	return got
}

// retry pops until it gets id, and acknowledges what else comes.
func (l *life) retry(b *brokertest.Broker, id string, invisible int64) lent {
	for range 10 {
		for _, d := range l.pop(b, "t", 1, invisible) {
			if d.id == id {
				return d
			}
			l.ack(b, "t", d)
		}
	}
	l.Fatalf("write %d: %s did not come back", l.At, id)
	return lent{}
}

func (l *life) ack(b *brokertest.Broker, topic string, d lent) {
	l.asked[d.id] = true
	done := make(chan error, 1)
	b.Pop.Ack("g", topic, d.handle, func(err error) { done <- err })
	l.promise(l.acked, d.id, <-done)
}

func (l *life) ackBatch(b *brokertest.Broker, topic string, all []lent) {
	var handles []receipt.Handle
	for _, d := range all {
		l.asked[d.id] = true
		handles = append(handles, d.handle)
	}
	done := make(chan []error, 1)
	b.Pop.AckBatch("g", topic, handles, func(errs []error) { done <- errs })
	for i, err := range <-done {
		l.promise(l.acked, all[i].id, err)
	}
}

func (l *life) ackBits(b *brokertest.Broker, topic string, d lent) {
	l.asked[d.id] = true
	done := make(chan error, 1)
	h := d.handle
	b.Pop.AckBits([]pop.BatchAck{{Group: "g", Topic: h.RealTopic(topic, "g"), QueueID: h.QueueID, StartOffset: h.Offset,
		PopTime: h.PopTime, Invisible: h.InvisibleTime, Bits: []byte{1}}}, func(_ int, err error) { done <- err })
	l.promise(l.acked, d.id, <-done)
}

func (l *life) change(b *brokertest.Broker, topic string, d *lent, invisible int64) {
	done := make(chan error, 1)
	b.Pop.ChangeInvisible("g", topic, d.handle, invisible, false, func(h receipt.Handle, err error) {
		d.handle = h
		done <- err
	})
	if err := <-done; err != nil {
		l.Errorf("write %d: change of %s: %v", l.At, d.id, err)
	}
}

func (l *life) forward(b *brokertest.Broker, topic string, d lent) {
	l.asked[d.id] = true
	done := make(chan error, 1)
	b.Pop.Forward("g", topic, d.handle, func(err error) { done <- err })
	l.promise(l.forwarded, d.id, <-done)
}

// in counts the messages that a topic holds, by id.
func (l *life) in(b *brokertest.Broker, topic string) map[string]int {
	all := map[string]int{}
	for off := b.Store.MinOffset(topic, 0); off < b.Store.MaxOffset(topic, 0); off++ {
		res := b.Store.Read(storage.ReadRequest{Topic: topic, Offset: off, MaxMessages: 1})
		for _, rec := range res.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				l.Error(err)
			}
			id, _, _ := strings.Cut(string(m.Body), ".")
			all[id]++
		}
		res.Release()
	}
	return all
}

// await waits until dispatch has shown a message.
func (l *life) await(b *brokertest.Broker, topic, id string) {
	for limit := time.Now().Add(20 * time.Second); l.in(b, topic)[id] == 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(limit) {
			l.Fatalf("write %d: %s is not in %s", l.At, id, topic)
		}
	}
	l.dispatched(b)
}

// dispatched waits until no delivery awaits its copy.
func (l *life) dispatched(b *brokertest.Broker) {
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		claimed := 0
		for _, v := range b.Pop.Dump(nil) {
			for _, f := range v.InFlight {
				if f.Claimed {
					claimed++
				}
			}
		}
		if claimed == 0 {
			return
		}
		if time.Now().After(limit) {
			l.Fatalf("write %d: %d deliveries await their copies", l.At, claimed)
		}
	}
}

// Settle consumes what is left and looks where each message went: to one place.
func (l *life) Settle(b *brokertest.Broker) {
	came := map[string]int{}
	from := map[string][]receipt.Handle{}
	for quiet := 0; quiet < 3; quiet++ {
		for _, name := range []string{"t", "f"} {
			for _, d := range l.pop(b, name, 32, 1<<40) {
				came[d.id]++
				from[d.id] = append(from[d.id], d.handle)
				quiet = 0
				done := make(chan error, 1)
				b.Pop.Ack("g", name, d.handle, func(err error) { done <- err })
				if err := <-done; err != nil {
					l.Errorf("write %d: ack of %s: %v", l.At, d.id, err)
				}
			}
		}
		b.Clock.Advance(2 * time.Minute)
		l.dispatched(b)
	}
	if err := b.Check(); err != nil {
		l.Errorf("write %d: %v", l.At, err)
	}
	dead := l.in(b, names.DeadLetter("g"))
	for i := 1; i <= 11; i++ {
		id := fmt.Sprint("m", i)
		places := came[id] + dead[id]
		switch {
		case l.acked[id] && came[id] > 0:
			l.Errorf("write %d: %s came back after its OK", l.At, id)
		case l.forwarded[id] && (came[id] > 0 || dead[id] != 1):
			l.Errorf("write %d: %s is a dead letter, and came %d times and is %d times among the dead letters", l.At, id, came[id], dead[id])
		case places > 1:
			l.Errorf("write %d: %s came %d times and is %d times among the dead letters: %+v", l.At, id, came[id], dead[id], from[id])
			l.where(b)
		case l.stored[id] && !l.asked[id] && places == 0:
			l.Errorf("write %d: %s is lost", l.At, id)
			l.where(b)
		}
	}
}

// where shows what there is.
func (l *life) where(b *brokertest.Broker) {
	for _, q := range b.Store.Queues() {
		l.Logf("%s: %v", q.Topic, l.in(b, q.Topic))
	}
	for _, v := range b.Pop.Dump(nil) {
		l.Logf("%+v", v)
	}
}
