package pop

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// These are reports of users that a transcript can't tell well.

// A redelivered message differs from the first delivery in its attempt and its receipt, and
// in what the retry adds to its properties (R010).
func TestRedeliveredUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBroker(t, true)
		b.open(true)
		defer func() { b.close() }()
		b.topic("T", "", 1)
		sent := &message.Message{
			Topic: "T", Flag: 77, SysFlag: message.SysCompressed, Body: []byte("\x78\x9c pretended to be compressed"),
			BornTimestamp: 1234567890123, BornHost: netip.MustParseAddrPort("10.1.2.3:4567"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
		}
		sent.Properties = sent.Properties.With(message.PropertyTags, "tag").With(message.PropertyKeys, "k1 k2")
		for i, value := range []string{"", " ", "a b", "ключ", "値", "=", "é\n"} {
			sent.Properties = sent.Properties.With(fmt.Sprint("user", i), value)
		}
		b.store.Append(sent, func(_ storage.Placed, err error) { b.fatal(err) })
		for delivery := range int32(3) {
			var got message.Message
			b.pop.Pop(Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 1000}, func(res Result, err error) {
				b.fatal(err)
				if res.Messages() != 1 {
					t.Fatalf("delivery %d: %d messages", delivery, res.Messages())
				}
				if _, err := message.DecodeStored(slices.Clone(res.Batches[0].Records[0].Bytes), &got); err != nil {
					t.Fatal(err)
				}
				res.Release()
			})
			if got.Flag != sent.Flag || got.SysFlag&message.SysCompressed == 0 || string(got.Body) != string(sent.Body) ||
				got.BornTimestamp != sent.BornTimestamp || got.ReconsumeTimes != delivery {
				t.Errorf("delivery %d: %+v", delivery, got)
			}
			for name, value := range sent.Properties.All() {
				if again, ok := got.Properties.Get(name); !ok || again != value {
					t.Errorf("delivery %d: property %s is %q, was %q", delivery, name, again, value)
				}
			}
			time.Sleep(time.Second + 50*time.Millisecond)
			synctest.Wait()
		}
	})
}

// One message of a thousand matches the filter: the search goes on until it has it, however
// far away it is, and a consumer that waits gets it at once (R027).
func TestRareMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBroker(t, true)
		b.open(true)
		defer func() { b.close() }()
		b.topic("T", "", 1)
		match, err := filter.Compile("TAG", "match")
		b.fatal(err)
		r := Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 60_000, PollTime: 15 * time.Second, Filter: match}
		for round := range 3 {
			answered := make(chan time.Time, 1)
			ask := func() {
				b.pop.Pop(r, func(res Result, err error) {
					b.fatal(err)
					if n := res.Messages(); n != 1 {
						t.Errorf("round %d: %d messages", round, n)
					}
					res.Release()
					answered <- time.Now()
				})
			}
			waits := round == 2
			if waits {
				ask()
			}
			for range 4999 {
				b.send("T", 0, "x", "other", "")
			}
			b.send("T", 0, "x", "match", "")
			came := time.Now()
			if !waits {
				ask()
			}
			if at := <-answered; at.Sub(came) > 100*time.Millisecond {
				t.Errorf("round %d: the match came after %v", round, at.Sub(came))
			}
		}
	})
}

// A message group is held while others of it arrive: a consumer that waits costs a bounded
// piece of work for each arrival, not a look at all that is behind (R029).
func TestArrivalsBehindAHeldGroup(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false) // the test is the worker, so that no two arrivals are taken together
	defer func() { b.close() }()
	b.topic("T", "FIFO", 1)
	g := group.New("g")
	b.fatal(b.groups.Put(g))
	b.send("T", 0, "head", "", "A")
	r := Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 600_000, OnePerGroup: true}
	held := popNow(t, b, r)
	cost := func(n int) time.Duration {
		began := cpuSeconds()
		for range n {
			b.send("T", 0, "x", "", "A")
			b.pop.runReady()
		}
		return time.Duration((cpuSeconds() - began) * float64(time.Second))
	}
	alone := cost(5000)
	waiting := make(chan Result, 1)
	b.pop.runReady()
	r.PollTime = time.Minute
	b.pop.Pop(r, func(res Result, err error) {
		b.fatal(err)
		waiting <- res
	})
	few := cost(2000)
	cost(8000) // until as much is set aside as may be
	many := cost(2000)
	t.Logf("CPU for 2,000 arrivals: %v with nobody waiting, %v, %v behind 10,000", alone*2/5, few, many)
	if many > 3*few+50*time.Millisecond {
		t.Errorf("an arrival costs more the more is behind: %v, then %v", few, many)
	}
	b.pop.Ack("g", "T", handleOf(&held), b.fatal)
	b.pop.runReady()
	if res := <-waiting; res.Messages() != 1 || res.Batches[0].Records[0].QueueOffset != 1 {
		t.Errorf("after the head came %+v", res)
	}
}

// Twenty consumers of a group that was never prepared start at one moment on an ordered
// topic, one message per answer: the order is 0 to 9 every time (R033).
func TestOrderOfAnUnpreparedGroup(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			b := newTestBroker(t, true)
			b.open(true)
			defer func() { b.close() }()
			b.topic("T", "FIFO", 4)
			for i := range 10 {
				b.send("T", 2, fmt.Sprint(i), "", "A")
			}
			var mu sync.Mutex
			var order []string
			var consumers sync.WaitGroup
			for range 20 {
				consumers.Go(func() {
					for range 10 {
						popped := make(chan struct{})
						b.pop.Pop(Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 60_000, PollTime: time.Second, OnePerGroup: true}, func(res Result, err error) {
							defer close(popped)
							b.fatal(err)
							var all []receipt.Handle
							for i := range res.Batches {
								for j := range res.Batches[i].Records {
									var m message.Message
									if _, err := message.DecodeStored(res.Batches[i].Records[j].Bytes, &m); err != nil {
										t.Error(err)
									}
									mu.Lock()
									order = append(order, string(m.Body))
									mu.Unlock()
									all = append(all, res.Handle(&res.Batches[i], &res.Batches[i].Records[j], "b"))
								}
							}
							res.Release()
							for _, h := range all {
								b.pop.Ack("g", "T", h, b.fatal)
							}
						})
						<-popped
					}
				})
			}
			consumers.Wait()
			if got := fmt.Sprint(order); got != "[0 1 2 3 4 5 6 7 8 9]" {
				t.Errorf("round %d: %s", round, got)
			}
		})
	}
}
