package timer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Each copy has the properties of its own message, whatever stood before in the memory that they
// are made in: in the same batch, which may need more of it, or in one before.
func TestCopiesKeepTheirProperties(t *testing.T) {
	t.Parallel()
	b := yearly(t, brokertest.Options{}, "T")
	want := make(map[string]string) // by body
	for wave, size := range []int{10, 5000, 1, 300} {
		due := b.Clock.WallMilli() + 10_000
		for i := range 600 {
			body := fmt.Sprintf("%d-%05d", wave, i)
			mark := strings.Repeat(body[:3], size+i%7)
			want[body] = mark
			send(t, b, "T", body, at(due)+"MARK\x01"+mark+"\x02")
		}
		b.Clock.Advance(20 * time.Second)
		b.Dispatched()
	}
	for from := int64(0); from < b.Store.MaxOffset("T", 0); {
		r := b.Store.Read(storage.ReadRequest{Topic: "T", Offset: from, MaxMessages: 32})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			body, p := string(m.Body), m.Properties
			if mark, waits := want[body]; !waits || p.Value("MARK") != mark || p.Value("UNIQ_KEY") != body[:min(8, len(body))] {
				t.Fatalf("%s (to come: %t) has the properties %.200q", body, waits, p)
			}
			for _, name := range []string{message.PropertyRealTopic, message.PropertyRealQueue} {
				if p.Has(name) {
					t.Errorf("%s has %s still", body, name)
				}
			}
			for _, name := range []string{message.PropertyTimerEnqueueMs, message.PropertyTimerDequeueMs, message.PropertySource} {
				if n := strings.Count(string(p), name+"\x01"); n != 1 {
					t.Errorf("%s has %s %d times", body, name, n)
				}
			}
			delete(want, body)
		}
		from = r.Next
		r.Release()
	}
	if len(want) > 0 {
		t.Errorf("%d messages did not come", len(want))
	}
}
