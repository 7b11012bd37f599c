package grpcv2

import (
	"errors"
	"testing"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/proto"
)

// sameAck compares what read made of a request with what the protobuf library makes.
func sameAck(t *testing.T, wire []byte) {
	t.Helper()
	var want v2.AckMessageRequest
	wantErr := proto.Unmarshal(wire, &want)
	c := newAckCall()
	defer c.release()
	err := c.read(append([]byte(nil), wire...))
	if (err == nil) != (wantErr == nil) {
		if wantErr != nil && err == nil {
			return // in a field that the server does not read
		}
		t.Fatalf("read: %v, protobuf: %v", err, wantErr)
	}
	if err != nil {
		return
	}
	if c.topic != want.GetTopic().GetName() || c.group != want.GetGroup().GetName() || !c.tooMany && len(c.entries) != len(want.GetEntries()) {
		t.Fatalf("got %q %q %v, want %v", c.topic, c.group, c.entries, &want)
	}
	for i, e := range want.GetEntries()[:len(c.entries)] {
		if c.entries[i].id != e.GetMessageId() || c.entries[i].handle != e.GetReceiptHandle() {
			t.Fatalf("entry %d: got %+v, want %v", i, c.entries[i], e)
		}
	}
}

func fullAck() *v2.AckMessageRequest {
	return &v2.AckMessageRequest{Topic: &v2.Resource{ResourceNamespace: "space", Name: "orders"}, Group: resource("g"), Entries: []*v2.AckMessageEntry{
		{MessageId: "01", ReceiptHandle: "0 1 2 3 0 broker-a 0 0 0", LiteTopic: proto.String("l")}, {}, {MessageId: "03"}}}
}

func TestAckRequestReadsAsProtobuf(t *testing.T) {
	wire := marshal(t, fullAck())
	for cut := range len(wire) + 1 {
		sameAck(t, wire[:cut])
	}
	sameAck(t, append(marshal(t, &v2.AckMessageRequest{Topic: resource("x"), Group: resource("y")}), wire...))
}

func FuzzAckRequest(f *testing.F) {
	wire, err := proto.Marshal(fullAck())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	f.Fuzz(func(t *testing.T, wire []byte) { sameAck(t, wire) })
}

func TestAckAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []ackEntry
		want    *v2.AckMessageResponse
	}{
		{"none", nil, &v2.AckMessageResponse{Status: &v2.Status{Code: v2.Code_INTERNAL_SERVER_ERROR, Message: "ack message result is empty"}}},
		{"all well", []ackEntry{{id: "1", handle: "a"}, {id: "2", handle: "b"}}, &v2.AckMessageResponse{Status: ok, Entries: []*v2.AckMessageResultEntry{
			{MessageId: "1", ReceiptHandle: "a", Status: ok}, {MessageId: "2", ReceiptHandle: "b", Status: ok}}}},
		{"mixed", []ackEntry{{id: "1", err: errors.New("no disk")}, {id: "2"}}, &v2.AckMessageResponse{
			Status: &v2.Status{Code: v2.Code_MULTIPLE_RESULTS, Message: "MULTIPLE_RESULTS"}, Entries: []*v2.AckMessageResultEntry{
				{MessageId: "1", Status: &v2.Status{Code: v2.Code_INTERNAL_SERVER_ERROR, Message: "no disk"}}, {MessageId: "2", Status: ok}}}},
	} {
		call := &ackCall{s: newHarness(t).service, entries: c.entries}
		call.settle()
		var got v2.AckMessageResponse
		if err := proto.Unmarshal(call.appendAnswer(nil), &got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, &got, c.want)
		}
	}
}
