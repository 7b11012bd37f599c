package message

import (
	"errors"
	"strconv"
	"testing"
)

func TestTimerDue(t *testing.T) {
	for _, c := range []struct {
		name, props string
		due         int64
		ok          bool
	}{
		{"ours", "TIMER_OUT_MS\x0110499\x02", 10500, true},
		{"ours, a whole second", "TIMER_OUT_MS\x0110999\x02TIMER_DELIVER_MS\x0111000\x02", 11000, true},
		{"rounded, the sender's time is known", "TIMER_OUT_MS\x0110000\x02TIMER_DELIVER_MS\x0110500\x02", 10500, true},
		{"rounded from a whole second", "TIMER_OUT_MS\x0110000\x02TIMER_DELIVER_MS\x0111000\x02", 11000, true},
		{"rounded from a delay", "TIMER_OUT_MS\x0110000\x02TIMER_DELAY_SEC\x015\x02", 11000, true},
		{"a delay counts before a time", "TIMER_OUT_MS\x0110000\x02TIMER_DELAY_MS\x015\x02TIMER_DELIVER_MS\x0110001\x02", 11000, true},
		{"a time of another message", "TIMER_OUT_MS\x0110000\x02TIMER_DELIVER_MS\x0120500\x02", 11000, true},
		{"none", "A\x01b\x02", 0, false},
		{"no number", "TIMER_OUT_MS\x01x\x02", 0, false},
	} {
		if due, ok := TimerDue(Properties(c.props)); due != c.due || ok != c.ok {
			t.Errorf("%s: due %d, %v; want %d, %v", c.name, due, ok, c.due, c.ok)
		}
	}
}

// TestTimerIsNeverEarly is R080: what is written for a time reads as that time, and Apache's
// slot for it does not end before.
func TestTimerIsNeverEarly(t *testing.T) {
	for due := int64(1_000_000); due < 1_003_000; due++ {
		exact := Properties("TIMER_DELIVER_MS\x01" + strconv.FormatInt(due, 10) + "\x02TIMER_OUT_MS\x01" + strconv.FormatInt(TimerOut(due), 10) + "\x02")
		if got, ok := TimerDue(exact); !ok || got != due {
			t.Fatalf("%d reads as %d", due, got)
		}
		moved := TimerExact(due)
		byDelay := Properties("TIMER_DELAY_MS\x017\x02TIMER_OUT_MS\x01" + strconv.FormatInt(TimerOut(moved), 10) + "\x02")
		if got, ok := TimerDue(byDelay); !ok || got < due || got > due+1 {
			t.Fatalf("a delay until %d reads as %d", due, got)
		}
		if slotEnds := TimerOut(due)/1000*1000 + 1000; slotEnds < due {
			t.Fatalf("Apache delivers at %d what is due at %d", slotEnds, due)
		}
	}
}

func TestRecallHandle(t *testing.T) {
	// Of Apache RocketMQ 5.5.0.
	const text = "djEgVCBicm9rZXItYSAxNzAwMDAwMDAwMDAxIEFCQw=="
	h := RecallHandle{Topic: "T", Broker: "broker-a", Due: 1700000000001, UniqKey: "ABC"}
	if h.String() != text {
		t.Errorf("%s", h.String())
	}
	for _, of := range []RecallHandle{h, {"T", "b", 1, "a key with blanks"}} {
		if got, err := ParseRecallHandle(of.String()); err != nil || got != of {
			t.Errorf("%+v: %v", got, err)
		}
	}
	for _, bad := range []string{"", "x", "****", text[:20], "djIgVCBicm9rZXItYSAxIEE=", RecallHandle{"T", "b", 0, "k"}.String(), RecallHandle{"", "b", 1, "k"}.String()} {
		if got, err := ParseRecallHandle(bad); !errors.Is(err, ErrRecallHandle) {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

func FuzzParseRecallHandle(f *testing.F) {
	f.Add("djEgVCBicm9rZXItYSAxNzAwMDAwMDAwMDAxIEFCQw==")
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := ParseRecallHandle(text); err == nil {
			if again, err := ParseRecallHandle(h.String()); err != nil || again != h {
				t.Errorf("%q: %+v, then %+v, %v", text, h, again, err)
			}
		}
	})
}
