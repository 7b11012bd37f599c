package bench

import (
	"slices"
	"testing"
	"time"
)

// TestLedgerNamesWhatIsWrong: lost messages, duplicates and strangers are told apart.
func TestLedgerNamesWhatIsWrong(t *testing.T) {
	l := newLedger(130)
	body := make([]byte, minBody)
	for number := range int64(130) {
		if number == 3 || number == 64 {
			continue
		}
		l.body(body, number, time.Now())
		if _, first := l.received(body); !first {
			t.Errorf("message %d counted as seen before", number)
		}
	}
	l.body(body, 100, time.Now())
	if _, first := l.received(body); first {
		t.Error("a duplicate counted as the first")
	}
	other := newLedger(130)
	other.body(body, 5, time.Now())
	l.received(body)
	l.received(body[:10])

	r := l.result("test", Options{}, measured{took: time.Second}, "", &histograms{})
	if r.Lost != 2 || !slices.Equal(r.LostFirst, []int64{3, 64}) {
		t.Errorf("lost %d: %v", r.Lost, r.LostFirst)
	}
	if r.Duplicates != 1 || !slices.Equal(r.TwiceFirst, []int64{100}) {
		t.Errorf("duplicates %d: %v", r.Duplicates, r.TwiceFirst)
	}
	if r.Foreign != 2 {
		t.Errorf("foreign %d", r.Foreign)
	}
	if r.Complete() {
		t.Error("a run with losses counts as complete")
	}
}

func TestSentTimeComesBack(t *testing.T) {
	l := newLedger(1)
	body := make([]byte, 100)
	at := time.Now()
	l.body(body, 0, at)
	if sent, _ := l.received(body); !sent.Equal(at) && sent.Sub(at).Abs() > time.Microsecond {
		t.Errorf("sent at %v came back as %v", at, sent)
	}
}

// TestLedgerCompletes: complete is closed with the last message, and not before.
func TestLedgerCompletes(t *testing.T) {
	l := newLedger(3)
	l.done(2)
	select {
	case <-l.complete:
		t.Fatal("complete with 2 of 3")
	default:
	}
	l.done(1)
	select {
	case <-l.complete:
	default:
		t.Fatal("not complete with 3 of 3")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Protocol: Remoting, Namesrv: "n", Size: 1024, Connections: 1, InFlight: 1, Count: 1, Queues: 1, Batch: 32}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Options){
		"protocol":    func(o *Options) { o.Protocol = "http" },
		"namesrv":     func(o *Options) { o.Namesrv = "" },
		"grpc":        func(o *Options) { o.Protocol = GRPC },
		"size":        func(o *Options) { o.Size = 8 },
		"batch":       func(o *Options) { o.Batch = 33 },
		"connections": func(o *Options) { o.Connections = 0 },
		"ack":         func(o *Options) { o.Ack = "twice" },
		"waiting":     func(o *Options) { o.Waiting = "push" },
		"invisible":   func(o *Options) { o.Invisible = -1 },
		"rate":        func(o *Options) { o.Rate = -1 },
		"pending":     func(o *Options) { o.Pending = -1 },
		"rest":        func(o *Options) { o.Rest = -1 },
	} {
		o := good
		spoil(&o)
		if o.check() == nil {
			t.Errorf("a wrong %s passes", name)
		}
	}
}
