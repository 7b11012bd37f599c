package bench

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/receipt"
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

	r := l.result("test", Options{}, time.Second, "", &histograms{})
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

// TestBatchAckBits: one entry per queue, one bit per message from the batch's start.
func TestBatchAckBits(t *testing.T) {
	p := &popper{group: "g", target: target{topic: "t", name: "b"}}
	body := p.batchAck([]receipt.Handle{
		{StartOffset: 10, Offset: 10, QueueID: 1, PopTime: 5, InvisibleTime: 6, ReviveQueue: 7},
		{StartOffset: 10, Offset: 19, QueueID: 1, PopTime: 5, InvisibleTime: 6, ReviveQueue: 7},
		{StartOffset: 0, Offset: 2, QueueID: 2},
	})
	var got struct {
		BrokerName string
		Acks       []struct {
			C, T, R, B     string
			SO, PT, IT     int64
			Queue          int32 `json:"q"`
			ReviveQueueNum int32 `json:"rq"`
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.BrokerName != "b" || len(got.Acks) != 2 {
		t.Fatalf("%s", body)
	}
	first, second := got.Acks[0], got.Acks[1]
	if bits, _ := base64.StdEncoding.DecodeString(first.B); !slices.Equal(bits, []byte{1, 2}) {
		t.Errorf("bits of queue 1: %v", bits)
	}
	if bits, _ := base64.StdEncoding.DecodeString(second.B); !slices.Equal(bits, []byte{4}) {
		t.Errorf("bits of queue 2: %v", bits)
	}
	if first.C != "g" || first.T != "t" || first.SO != 10 || first.PT != 5 || first.IT != 6 || first.ReviveQueueNum != 7 {
		t.Errorf("%+v", first)
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
	} {
		o := good
		spoil(&o)
		if o.check() == nil {
			t.Errorf("a wrong %s passes", name)
		}
	}
}
