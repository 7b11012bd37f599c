package timer_test

import (
	"testing"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// A steady flow is delivered in rounds, nothing before its time.
func TestAFlowIsDeliveredInRounds(t *testing.T) {
	t.Parallel()
	b := yearly(t, brokertest.Options{}, "T")
	const many = 600
	first := b.Clock.WallMilli() + 2000
	for i := range int64(many) {
		send(t, b, "T", "body", at(first+i))
	}
	brokertest.Until(t, "all of the flow", func() bool { return b.Store.MaxOffset("T", 0) == many })
	b.Dispatched()
	rounds := 0
	last := int64(0)
	for from := int64(0); from < many; {
		r := b.Store.Read(storage.ReadRequest{Topic: "T", Offset: from, MaxMessages: 32})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			due, _ := message.TimerDue(m.Properties)
			if m.StoreTimestamp < due {
				t.Errorf("%d ms early", due-m.StoreTimestamp)
			}
			if m.StoreTimestamp > last {
				last, rounds = m.StoreTimestamp, rounds+1
			}
		}
		from = r.Next
		r.Release()
	}
	// One for each millisecond of the first two spans, in which the flow is not known to be one, and some
	// for each round.
	if rounds > many/2 {
		t.Errorf("%d messages, one a millisecond, were stored at %d times", many, rounds)
	}
}
