package brokerrpc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// replied is what an asker was told.
type replied struct {
	header remoting.PushReplyMessageRequest
	body   string
}

// asker connects a producer that waits for replies; answer says what it makes of one, -1 that
// it does not answer at all.
func (n *node) asker(id string, answer int32) (*transport.Conn, chan replied) {
	n.t.Helper()
	got := make(chan replied, 10)
	conn := n.connect(func(r *transport.Request) {
		if r.Code != remoting.ReqPushReplyMessageToClient {
			return
		}
		var h remoting.PushReplyMessageRequest
		if err := r.Decode(&h); err != nil {
			n.t.Error(err)
		}
		h.Properties = strings.Clone(h.Properties)
		got <- replied{h, string(r.Body)}
		if answer >= 0 {
			r.Responder().Reply(answer, "so it is", nil, nil)
		}
	})
	hb := remoting.Marshal(&remoting.HeartbeatData{ClientID: id, ProducerDataSet: []remoting.ProducerData{{GroupName: "askers"}}})
	if r := callOn(n.t, conn, remoting.ReqHeartBeat, nil, hb); r.Code != 0 {
		n.t.Fatal(r.Remark)
	}
	return conn, got
}

func replyHeader(n *node, properties ...string) *remoting.SendMessageRequest {
	h := sendHeader(names.Reply(n.Cluster), 0, "")
	h.SysFlag, h.Flag, h.ReconsumeTimes = message.SysCompressed, 7, 2
	h.Properties = string(message.Properties("").WithAll(properties...))
	return h
}

// kept are the properties of what lies in the reply topic, as soon as it is as many.
func (n *node) kept(want int) []message.Properties {
	n.t.Helper()
	until(n.t, "dispatch", func() bool { return n.Store.MaxOffset(names.Reply(n.Cluster), 0) == int64(want) })
	read := n.Store.Read(storage.ReadRequest{Topic: names.Reply(n.Cluster), MaxMessages: 100, MaxBytes: 1 << 20})
	defer read.Release()
	var all []message.Properties
	for i := range read.Records {
		m := new(message.Message)
		if _, err := message.DecodeStored(read.Records[i].Bytes, m); err != nil {
			n.t.Fatal(err)
		}
		all = append(all, message.Properties(strings.Clone(string(m.Properties))))
	}
	return all
}

// TestReply: the reply reaches who has asked as it was sent, and is stored.
func TestReply(t *testing.T) {
	n := newNode(t)
	_, got := n.asker("asker@1", 0)
	for i, code := range []int32{remoting.ReqSendReplyMessage, remoting.ReqSendReplyMessageV2} {
		h := replyHeader(n, "REPLY_TO_CLIENT", "asker@1", "CORRELATION_ID", "c1", "TTL", "3000", "MSG_TYPE", "reply", "own", "größe")
		h.V2 = code == remoting.ReqSendReplyMessageV2
		var a remoting.SendMessageResponse
		n.ok(code, h, []byte("answer"), &a)
		r := <-got
		if r.body != "answer" || r.header.ProducerGroup != "p" || r.header.Topic != names.Reply(n.Cluster) || r.header.SysFlag != message.SysCompressed ||
			r.header.Flag != 7 || r.header.ReconsumeTimes != 2 || r.header.BornTimestamp != h.BornTimestamp || r.header.DefaultTopicQueueNums != 4 ||
			r.header.StoreHost != n.StoreHost.String() || r.header.BornHost == "" || r.header.StoreTimestamp == 0 {
			t.Errorf("the asker was told %+v", r)
		}
		told := message.Properties(r.header.Properties)
		if told.Value("CORRELATION_ID") != "c1" || told.Value("own") != "größe" || told.Value("TTL") != "3000" || told.Value("PUSH_REPLY_TIME") == "" {
			t.Errorf("the asker was told the properties %q", told)
		}
		kept := n.kept(i + 1)
		if kept[i].Value("CORRELATION_ID") != "c1" || a.QueueOffset != int64(i) || len(a.MsgID) != 32 {
			t.Errorf("stored %q, answered %+v", kept, a)
		}
	}
	n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("storeReplyMessageEnable=false"), nil)
	var a remoting.SendMessageResponse
	end := n.Store.LogEnd()
	n.ok(remoting.ReqSendReplyMessageV2, replyHeader(n, "REPLY_TO_CLIENT", "asker@1"), []byte("not kept"), &a)
	if r := <-got; r.body != "not kept" || a.MsgID != "0" || a.QueueOffset != 0 || n.Store.LogEnd() != end {
		t.Errorf("told %+v, answered %+v, the log's end is %d, was %d", r, a, n.Store.LogEnd(), end)
	}
}

// TestReplyToNobody: whoever replies learns that nobody has taken it, and why; the reply is
// stored all the same.
func TestReplyToNobody(t *testing.T) {
	n := newNode(t)
	_, refused := n.asker("refuses", 1)
	gone, _ := n.asker("gone", 0)
	gone.Close()
	until(t, "the closed asker is forgotten", func() bool { _, there := n.Clients.Producer("gone"); return !there })
	for i, c := range []struct {
		properties []string
		want       string
	}{
		{nil, "no property REPLY_TO_CLIENT"},
		{[]string{"REPLY_TO_CLIENT", "never there"}, `REPLY_TO_CLIENT is "never there"`},
		{[]string{"REPLY_TO_CLIENT", "gone"}, `REPLY_TO_CLIENT is "gone"`},
		{[]string{"REPLY_TO_CLIENT", "refuses"}, `"refuses" answered 1 so it is`},
	} {
		a := n.call(remoting.ReqSendReplyMessageV2, replyHeader(n, c.properties...), []byte("x"))
		if a.Code != remoting.ResSystemError || !strings.Contains(a.Remark, c.want) {
			t.Errorf("%v: answered %d %q", c.properties, a.Code, a.Remark)
		}
		n.kept(i + 1)
	}
	if r := <-refused; r.body != "x" {
		t.Errorf("told %+v", r)
	}
	// What the topic would not take reaches nobody.
	_, got := n.asker("there", 0)
	h := replyHeader(n, "REPLY_TO_CLIENT", "there")
	h.Topic, h.DefaultTopic = "nowhere", ""
	if a := n.call(remoting.ReqSendReplyMessageV2, h, []byte("x")); a.Code != remoting.ResTopicNotExist {
		t.Errorf("answered %d %q", a.Code, a.Remark)
	}
	if a := n.call(remoting.ReqSendReplyMessageV2, replyHeader(n, "REPLY_TO_CLIENT", "there"), nil); a.Code != remoting.ResMessageIllegal {
		t.Errorf("answered %d %q", a.Code, a.Remark)
	}
	select {
	case r := <-got:
		t.Errorf("told %+v", r)
	default:
	}
}

// An asker that does not answer holds the replier up for ten seconds.
func TestAskerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		defer n.stop()
		n.asker("hangs", -1)
		began := time.Now()
		a := n.call(remoting.ReqSendReplyMessageV2, replyHeader(n, "REPLY_TO_CLIENT", "hangs"), []byte("x"))
		if waited := time.Since(began); a.Code != remoting.ResSystemError || !strings.Contains(a.Remark, `"hangs" has not answered within 10s`) || waited < 10*time.Second || waited > 12*time.Second {
			t.Errorf("after %v: %d %q", waited, a.Code, a.Remark)
		}
	})
}
