package grpcv2_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/bolidetest"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (c *caller) sendAt(topic, body string, at time.Time) *v2.SendMessageResponse {
	c.t.Helper()
	resp, err := c.SendMessage(c.ctx(), &v2.SendMessageRequest{Messages: []*v2.Message{{Topic: name(topic), Body: []byte(body),
		SystemProperties: &v2.SystemProperties{MessageId: body, MessageType: v2.MessageType_DELAY, DeliveryTimestamp: timestamppb.New(at)}}}})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// TestOneLimitForTimers is R074 and R075: both protocols have the limit that is set, years of
// it as well, and say which it is.
func TestOneLimitForTimers(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, limit := range []time.Duration{60 * day, 5 * 365 * day} {
		srv := bolidetest.Start(t, bolidetest.Setting("timerMaxDelaySec", strconv.FormatInt(int64(limit/time.Second), 10)))
		srv.CreateTopic("later", "DELAY")
		c := dial(t, srv.GRPC(), "c")
		rpc := transport.NewClient(transport.ClientOptions{})
		defer rpc.Close()
		remotely := func(ahead time.Duration) (bool, string) {
			at := time.Now().Add(ahead).UnixMilli()
			answer, err := rpc.Call(c.ctx(), srv.Broker(), remoting.ReqSendMessageV2, &remoting.SendMessageRequest{ProducerGroup: "p", Topic: "later",
				DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, Properties: "TIMER_DELIVER_MS\x01" + strconv.FormatInt(at, 10) + "\x02", V2: true}, []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			return answer.Code == 0, answer.Remark
		}
		byGRPC := func(ahead time.Duration) (bool, string) {
			st := c.sendAt("later", "m", time.Now().Add(ahead)).GetStatus()
			if code := st.GetCode(); code != v2.Code_OK && code != v2.Code_ILLEGAL_DELIVERY_TIME {
				t.Fatalf("%v", st)
			}
			return st.GetCode() == v2.Code_OK, st.GetMessage()
		}
		for protocol, send := range map[string]func(time.Duration) (bool, string){"Remoting": remotely, "gRPC": byGRPC} {
			low, high := time.Duration(0), 100*365*day
			for high-low > time.Minute {
				if middle := (low + high) / 2; first(send(middle)) {
					low = middle
				} else {
					high = middle
				}
			}
			if off := (low - limit).Abs(); off > 2*time.Minute {
				t.Errorf("%s: the limit is %v, want %v", protocol, low, limit)
			}
			if ok, text := send(limit + day); ok || !strings.Contains(text, strconv.Itoa(int(limit/day))+" days") || !strings.Contains(text, "TIMER_DELIVER_MS") {
				t.Errorf("%s: %v %q", protocol, ok, text)
			}
		}
	}
}

// TestRecallOverGRPC is R081: each answer has a status of its own.
func TestRecallOverGRPC(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("later", "DELAY")
	c := dial(t, srv.GRPC(), "c")
	at := time.Now().Add(time.Minute)
	back, kept := c.sendAt("later", "back", at).GetEntries()[0].GetRecallHandle(), c.sendAt("later", "kept", at).GetEntries()[0].GetRecallHandle()
	recall := func(what, handle string, code v2.Code, id string) {
		t.Helper()
		resp, err := c.RecallMessage(c.ctx(), &v2.RecallMessageRequest{Topic: name("later"), RecallHandle: handle})
		if err != nil || resp.GetStatus().GetCode() != code || resp.GetMessageId() != id {
			t.Errorf("%s: %v, %v", what, resp, err)
		}
	}
	recall("in time", back, v2.Code_OK, "back")
	recall("once more", back, v2.Code_OK, "back")
	recall("cut", kept[:9], v2.Code_BAD_REQUEST, "")
	srv.Advance(2 * time.Minute)
	if got := c.take(receiveRequest("later", "g"), 1); string(got[0].GetBody()) != "kept" {
		t.Errorf("%v", got)
	}
	recall("too late", kept, v2.Code_PRECONDITION_FAILED, "")
	recall("never sent", message.RecallHandle{Topic: "later", Broker: "broker-a", Due: at.UnixMilli(), UniqKey: "x"}.String(), v2.Code_MESSAGE_NOT_FOUND, "")
}

func first(ok bool, _ string) bool { return ok }

// TestTimersAreInTime: what is sent for a time is there then and not before, the rest of a
// nanosecond counts up, and the receiver is told which time it was.
func TestTimersAreInTime(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("later", "DELAY")
	c := dial(t, srv.GRPC(), "c")
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond).Add(time.Nanosecond)
	for _, body := range []string{"a", "b"} {
		if resp := c.sendAt("later", body, at); resp.GetStatus().GetCode() != v2.Code_OK {
			t.Fatal(resp)
		}
	}
	if resp := c.sendAt("later", "now", time.Now().Add(-time.Hour)); resp.GetStatus().GetCode() != v2.Code_OK {
		t.Fatal(resp)
	}
	got := c.take(receiveRequest("later", "g"), 1)
	if string(got[0].GetBody()) != "now" {
		t.Fatalf("%v", got)
	}
	c.wantAck("later", "g", v2.Code_OK, handle(got[0]))
	srv.Restart() // whose clock is the machine's again
	c = dial(t, srv.GRPC(), "c")
	srv.Advance(time.Hour - time.Minute)
	req := receiveRequest("later", "g")
	req.LongPollingTimeout = durationpb.New(time.Second) // means the shortest
	if got, st, err := c.receive(c.ctx(), req); err != nil || len(got) > 0 || st.GetCode() != v2.Code_MESSAGE_NOT_FOUND {
		t.Fatalf("early: %v, %v, %v", got, st, err)
	}
	srv.Advance(2 * time.Minute)
	for _, m := range c.take(receiveRequest("later", "g"), 2) {
		sys := m.GetSystemProperties()
		if b := string(m.GetBody()); b != "a" && b != "b" || sys.GetMessageType() != v2.MessageType_DELAY || sys.GetDeliveryTimestamp().AsTime().UnixMilli() != at.UnixMilli()+1 {
			t.Errorf("%v", m)
		}
	}
}
