package grpcv2

import (
	"context"
	"strconv"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

func (h *harness) parked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}

// A receive that waits is answered by the next message.
func TestReceiveWaits(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	done := make(chan int, 1)
	ctx := h.as("c")
	go func() {
		_, messages := h.receive(ctx, h.receiveRequest("orders"))
		done <- len(messages)
	}()
	eventually(t, "the receive is parked", func() bool { return h.parked() == 1 })
	h.sendOne(normal("orders", "01"))
	if n := <-done; n != 1 {
		t.Errorf("%d messages", n)
	}
}

// A message that comes for a receive whose client has gone is visible at once to others,
// and has cost no attempt.
func TestReceiveCancelledWhileWaiting(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	ctx, cancel := context.WithCancel(h.as("c"))
	stream, err := h.client.ReceiveMessage(ctx, h.receiveRequest("orders"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the receive is parked", func() bool { return h.parked() == 1 })
	cancel()
	if _, err := stream.Recv(); err == nil {
		t.Fatal("an answer")
	}
	eventually(t, "the broker is told that nobody waits any more", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.withdrawn) == 1 && h.withdrawn[0] == h.pops[0].Waiter
	})
	<-h.service.calls.idle()
	h.sendOne(normal("orders", "01"))
	st, messages := h.receive(h.as("d"), h.receiveRequest("orders"))
	wantStatus(t, "receive", st, v2.Code_OK, "")
	if len(messages) != 1 || messages[0].GetSystemProperties().GetDeliveryAttempt() != 1 {
		t.Errorf("received %v", messages)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.given) != 1 || !h.given[0].Suspend || h.given[0].Invisible != 0 {
		t.Errorf("given back: %+v", h.given)
	}
}

// R043: what could not be written to a client that went away is given back at once.
func TestReceiveCancelledWhileWriting(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	big := make([]byte, 1<<20)
	const n = 20
	for i := range n {
		m := normal("orders", strconv.Itoa(i))
		m.Body = big
		h.sendOne(m)
	}
	ctx, cancel := context.WithCancel(h.as("c"))
	stream, err := h.client.ReceiveMessage(ctx, h.receiveRequest("orders"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the status and one message; then nobody reads
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-h.service.calls.idle()
	eventually(t, "messages are given back", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.given) > 0
	})
	_, messages := h.receive(h.as("d"), h.receiveRequest("orders"))
	if len(messages) == 0 {
		t.Error("nothing is visible to the next client")
	}
	for _, m := range messages {
		if m.GetSystemProperties().GetDeliveryAttempt() != 1 {
			t.Errorf("attempt %d", m.GetSystemProperties().GetDeliveryAttempt())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released != 2 {
		t.Errorf("%d answers released, want 2", h.released)
	}
}

// Draining answers what waits and leaves nothing behind.
func TestDrainAnswersLongPolls(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	answered := make(chan *v2.Status, 1)
	ctx := h.as("c")
	go func() {
		st, _ := h.receive(ctx, h.receiveRequest("orders"))
		answered <- st
	}()
	eventually(t, "the receive is parked", func() bool { return h.parked() == 1 })
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := h.service.Drain(limit); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "drained", <-answered, v2.Code_MESSAGE_NOT_FOUND, "no new message")
}

// A handler that panics ends its connection; the next stop does not wait for its call, and
// waits for others.
func TestDrainAfterAPanic(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	for what, call := range map[string]func() error{
		"send": func() error {
			_, err := h.client.SendMessage(h.as("c"), &v2.SendMessageRequest{Messages: []*v2.Message{normal("broken", "01")}})
			return err
		},
		"receive": func() error {
			stream, err := h.client.ReceiveMessage(h.as("c"), h.receiveRequest("broken"))
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	h.sendOne(normal("orders", "01")) // on a new connection
	h.service.calls.begin()
	drained := make(chan error, 1)
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	idle := h.service.calls.idle()
	go func() { drained <- h.service.Drain(limit) }()
	select {
	case <-idle:
		t.Error("a call that goes on is not waited for")
	default:
	}
	h.service.calls.end()
	if err := <-drained; err != nil {
		t.Errorf("it waits for calls that nobody ends: %v", err)
	}
}

// A client that does not read its answers fills the memory up to a limit, not beyond, and
// others go on when it is gone.
func TestClientThatDoesNotRead(t *testing.T) {
	h := newHarness(t)
	h.topic("orders", proxy.KindNormal)
	m := normal("orders", "big")
	m.Body = make([]byte, 2<<20)
	h.sendOne(m)
	record := h.queues["orders"][0]
	for range 100 * 32 {
		h.queues["orders"] = append(h.queues["orders"], &fakeRecord{bytes: record.bytes, message: record.message})
	}
	ctx, cancel := context.WithCancel(h.as("c"))
	for n := 0; h.service.answering.Load() <= maxAnswering; n++ {
		if n == 100 {
			t.Fatal("never refused")
		}
		stream, err := h.client.ReceiveMessage(ctx, h.receiveRequest("orders"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil { // the status; the rest stays
			t.Fatal(err)
		}
	}
	st, _ := h.receive(h.as("d"), h.receiveRequest("orders"))
	wantStatus(t, "receive", st, v2.Code_TOO_MANY_REQUESTS, "do not read")
	cancel()
	eventually(t, "the answers are gone", func() bool { return h.service.answering.Load() == 0 })
	req := h.receiveRequest("orders")
	req.BatchSize = 1
	st, messages := h.receive(h.as("d"), req)
	wantStatus(t, "receive", st, v2.Code_OK, "")
	if len(messages) != 1 {
		t.Errorf("%d messages", len(messages))
	}
}
