package grpcv2_test

import (
	"context"
	"strings"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/bolidetest"
)

func (c *caller) half(topic, id, body string, change func(*v2.SystemProperties)) string {
	c.t.Helper()
	sys := &v2.SystemProperties{MessageId: id, MessageType: v2.MessageType_TRANSACTION}
	if change != nil {
		change(sys)
	}
	resp, err := c.SendMessage(c.ctx(), &v2.SendMessageRequest{Messages: []*v2.Message{{Topic: name(topic), Body: []byte(body), SystemProperties: sys}}})
	if err != nil || resp.GetStatus().GetCode() != v2.Code_OK || len(resp.GetEntries()) != 1 {
		c.t.Fatalf("half: %v, %v", resp, err)
	}
	return resp.GetEntries()[0].GetTransactionId()
}

func (c *caller) end(topic, id, transaction string, what v2.TransactionResolution) *v2.Status {
	c.t.Helper()
	resp, err := c.EndTransaction(c.ctx(), &v2.EndTransactionRequest{Topic: name(topic), MessageId: id, TransactionId: transaction, Resolution: what, Source: v2.TransactionSource_SOURCE_CLIENT})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.GetStatus()
}

// producer opens the telemetry stream of a producer and returns what it is told.
func (c *caller) producer(topic string) <-chan *v2.RecoverOrphanedTransactionCommand {
	c.t.Helper()
	stream, err := c.Telemetry(c.ctx())
	if err != nil {
		c.t.Fatal(err)
	}
	err = stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: &v2.Settings{
		ClientType: v2.ClientType_PRODUCER.Enum(), PubSub: &v2.Settings_Publishing{Publishing: &v2.Publishing{Topics: []*v2.Resource{name(topic)}}}}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if cmd, err := stream.Recv(); err != nil || cmd.GetStatus().GetCode() != v2.Code_OK {
		c.t.Fatalf("settings: %v, %v", cmd, err)
	}
	asked := make(chan *v2.RecoverOrphanedTransactionCommand, 16)
	go func() {
		for {
			cmd, err := stream.Recv()
			if err != nil {
				return
			}
			if r := cmd.GetRecoverOrphanedTransactionCommand(); r != nil {
				asked <- r
			}
		}
	}()
	return asked
}

const (
	commits   = v2.TransactionResolution_COMMIT
	rollsBack = v2.TransactionResolution_ROLLBACK
	knowsNot  = v2.TransactionResolution_TRANSACTION_RESOLUTION_UNSPECIFIED
)

// TestTransaction: half messages, decisions in every order, over a restart, with ids that are
// wrong in every way.
func TestTransaction(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "TRANSACTION")
	srv.CreateTopic("plain", "NORMAL")
	c := dial(t, srv.GRPC(), "c")
	a, b, open := c.half("orders", "0A", "a", nil), c.half("orders", "0B", "b", nil), c.half("orders", "0C", "c", nil)
	resp, err := c.SendMessage(c.ctx(), &v2.SendMessageRequest{Messages: []*v2.Message{{Topic: name("plain"), Body: []byte("x"),
		SystemProperties: &v2.SystemProperties{MessageId: "01", MessageType: v2.MessageType_TRANSACTION}}}})
	if err != nil || resp.GetStatus().GetCode() != v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE {
		t.Errorf("half message to a plain topic: %v, %v", resp, err)
	}
	srv.Restart()
	c = dial(t, srv.GRPC(), "c")
	forged := strings.Replace(a, "t1.", "t1.1", 1)
	for _, s := range []struct {
		what, topic, id, transaction string
		as                           v2.TransactionResolution
		want                         v2.Code
	}{
		{"another message's", "orders", "0B", a, commits, v2.Code_INVALID_TRANSACTION_ID},
		{"another topic's", "plain", "0A", a, commits, v2.Code_INVALID_TRANSACTION_ID},
		{"forged", "orders", "0A", forged, commits, v2.Code_INVALID_TRANSACTION_ID},
		{"cut", "orders", "0A", a[:len(a)-3], commits, v2.Code_INVALID_TRANSACTION_ID},
		{"message id", "orders", "0A", "0A", commits, v2.Code_INVALID_TRANSACTION_ID},
		{"blank", "orders", "0A", " ", commits, v2.Code_INVALID_TRANSACTION_ID},
		{"no resolution known", "orders", "0A", a, 7, v2.Code_BAD_REQUEST},
		{"unknown", "orders", "0A", a, knowsNot, v2.Code_OK},
		{"commit", "orders", "0A", a, commits, v2.Code_OK},
		{"commit again", "orders", "0A", a, commits, v2.Code_OK},
		{"rollback of what is committed", "orders", "0A", a, rollsBack, v2.Code_PRECONDITION_FAILED},
		{"rollback", "orders", "0B", b, rollsBack, v2.Code_OK},
		{"commit of what is rolled back", "orders", "0B", b, commits, v2.Code_PRECONDITION_FAILED},
	} {
		if st := c.end(s.topic, s.id, s.transaction, s.as); st.GetCode() != s.want || st.GetMessage() == "" {
			t.Errorf("%s: %v, want %v", s.what, st, s.want)
		}
	}
	m := c.take(receiveRequest("orders", "g"), 1)[0]
	if string(m.GetBody()) != "a" || m.GetSystemProperties().GetMessageId() != "0A" {
		t.Errorf("received %v", m)
	}
	if open == "" {
		t.Error("no transaction id")
	}
}

// TestOrphanedTransaction: a producer is asked when its half message has waited for as long as
// it said, and the id that comes along decides it; when it is gone, another one is asked.
func TestOrphanedTransaction(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "TRANSACTION")
	c := dial(t, srv.GRPC(), "c")
	asked := c.producer("orders")
	id := c.half("orders", "0A", "a", func(s *v2.SystemProperties) { s.OrphanedTransactionRecoveryDuration = durationpb.New(2 * time.Second) })
	srv.Advance(3 * time.Second)
	one := within(t, asked)
	if one.GetTransactionId() != id || string(one.GetMessage().GetBody()) != "a" || one.GetMessage().GetTopic().GetName() != "orders" ||
		one.GetMessage().GetSystemProperties().GetMessageId() != "0A" || one.GetMessage().GetSystemProperties().GetMessageType() != v2.MessageType_TRANSACTION {
		t.Errorf("%v, the id was %s", one, id)
	}
	if _, err := c.NotifyClientTermination(c.ctx(), &v2.NotifyClientTerminationRequest{}); err != nil {
		t.Fatal(err)
	}
	other := dial(t, srv.GRPC(), "other")
	asked = other.producer("orders")
	srv.Advance(31 * time.Second)
	two := within(t, asked)
	if st := other.end("orders", "0A", two.GetTransactionId(), commits); st.GetCode() != v2.Code_OK {
		t.Errorf("%v", st)
	}
	other.take(receiveRequest("orders", "g"), 1)
}

func within[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case v = <-ch:
	case <-ctx.Done():
		t.Fatal("nothing came")
	}
	return v
}
