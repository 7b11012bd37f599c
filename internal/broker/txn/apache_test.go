package txn_test

import (
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Apache's transactionMetrics counts what is open, by topic.
func TestExport(t *testing.T) {
	b, c := openByTheHour(t)
	began := c.NowMilli()
	for _, body := range []string{"open", "committed", "left"} {
		h, err := sendHalf(b, body, "p", "")
		if err != nil {
			t.Fatal(err)
		}
		if body == "committed" {
			if err := decide(b, h, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Dispatched()
	c.Advance(2 * time.Second) // they are looked at
	text, err := b.Txn.Export()
	if err != nil {
		t.Fatal(err)
	}
	var got remoting.TransactionCounts
	if err := remoting.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if of := got.TransactionCount["T"]; len(got.TransactionCount) != 1 || of.Count != 2 || of.TimeStamp < began || got.DataVersion.Counter != 3 {
		t.Errorf("%s", text)
	}
}
