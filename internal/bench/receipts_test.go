package bench

import (
	"slices"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestAckBatchBits: one entry per queue of a topic, one bit per message from the batch's start.
func TestAckBatchBits(t *testing.T) {
	body := ackBatch("g", "t", []receipt.Handle{
		{Broker: "b", StartOffset: 10, Offset: 10, QueueID: 1, PopTime: 5, InvisibleTime: 6, ReviveQueue: 7},
		{Broker: "b", StartOffset: 10, Offset: 19, QueueID: 1, PopTime: 5, InvisibleTime: 6, ReviveQueue: 7},
		{Broker: "b", StartOffset: 0, Offset: 2, QueueID: 2},
		{Broker: "b", StartOffset: 0, Offset: 0, QueueID: 2, RetryFlag: receipt.FlagRetryV1},
	})
	var got remoting.BatchAckBody
	if err := remoting.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.BrokerName != "b" || len(got.Acks) != 3 {
		t.Fatalf("%s", body)
	}
	for i, want := range [][]byte{{1, 2}, {4}, {1}} {
		if !slices.Equal(got.Acks[i].Bits, want) {
			t.Errorf("bits of entry %d: %v, not %v", i, got.Acks[i].Bits, want)
		}
	}
	first, retry := got.Acks[0], got.Acks[2]
	if first.ConsumerGroup != "g" || first.Topic != "t" || first.StartOffset != 10 || first.PopTime != 5 || first.InvisibleTime != 6 || first.ReviveQueueID != 7 || first.Retry != "0" {
		t.Errorf("%+v", first)
	}
	if retry.Topic != "t" || retry.Retry != "1" {
		t.Errorf("of the retry topic: %+v", retry)
	}
}

// TestReceipts: of a message of the topic, of one read from a retry topic, and of one that
// carries its receipt.
func TestReceipts(t *testing.T) {
	p := popped{broker: "b", header: remoting.PopMessageResponse{PopTime: 5, InvisibleTime: 6}, starts: map[receipt.Queue]int64{
		{QueueID: 3}: 30,
		{QueueID: 0, RetryFlag: receipt.FlagRetryV2}: 7,
	}}
	for _, c := range []struct {
		name string
		m    message.Message
		want string
	}{
		{"of the topic", message.Message{Topic: "t", QueueID: 3, QueueOffset: 31}, "30 5 6 0 0 b 3 31"},
		{"of a retry topic", message.Message{Topic: "%RETRY%g+t", QueueOffset: 8, ReconsumeTimes: 1}, "7 5 6 0 2 b 0 8"},
		{"with its receipt", message.Message{Topic: "t", ReconsumeTimes: 1, Properties: "POP_CK\x011 2 3 4 1 b 0 9\x02"}, "1 2 3 4 1 b 0 9"},
	} {
		h, err := p.receipt(&c.m)
		if err != nil || h.String() != c.want {
			t.Errorf("%s: %v, %v, not %s", c.name, h, err, c.want)
		}
	}
	if h, err := p.receipt(&message.Message{Topic: "t", QueueID: 4}); err == nil {
		t.Errorf("a message of a queue that the answer does not name has the receipt %v", h)
	}
}
