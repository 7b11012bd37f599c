package brokerrpc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

const (
	unknown  = int32(0)
	commit   = message.SysTransactionCommit
	rollback = message.SysTransactionRollback
)

func halfHeader(topic, group, properties string) *remoting.SendMessageRequest {
	h := sendHeader(topic, 0, "TRAN_MSG\x01true\x02PGROUP\x01"+group+"\x02"+properties)
	h.ProducerGroup, h.SysFlag = group, message.SysTransactionPrepared
	return h
}

// half sends a half message and returns it as it is listed.
func (n *node) half(topic, group, body, properties string) txn.Undecidedness {
	n.t.Helper()
	var a remoting.SendMessageResponse
	n.ok(remoting.ReqSendMessageV2, halfHeader(topic, group, properties), []byte(body), &a)
	until(n.t, "dispatch", func() bool { return n.Store.LogMax() == n.Store.LogEnd() })
	return n.undecided(a.QueueOffset)
}

func (n *node) undecided(offset int64) txn.Undecidedness {
	n.t.Helper()
	list, _ := n.Txn.List("", "", 1<<20)
	for _, u := range list {
		if u.QueueOffset == offset {
			return u
		}
	}
	n.t.Fatalf("half message %d is not open", offset)
	return txn.Undecidedness{}
}

func endHeader(u txn.Undecidedness, what int32) *remoting.EndTransactionRequest {
	return &remoting.EndTransactionRequest{Topic: u.Topic, ProducerGroup: u.Group, TranStateTableOffset: u.QueueOffset, CommitLogOffset: u.LogOffset,
		CommitOrRollback: what, MsgID: u.UniqueID, TransactionID: u.UniqueID}
}

func (n *node) visible(topic string) string {
	n.t.Helper()
	until(n.t, "dispatch", func() bool { return n.Store.LogMax() == n.Store.LogEnd() })
	if n.Store.MaxOffset(topic, 0) == 0 {
		return ""
	}
	return n.bodies(n.call(remoting.ReqPullMessage, pullHeader("g", topic, 0, 0), nil))
}

// TestEndTransaction: the answers to decisions of all kinds, and what consumers see.
func TestEndTransaction(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	a, b := n.half("T", "p", "a", "TAGS\x01x\x02"), n.half("T", "p", "b", "")
	if seen := n.visible("T"); seen != "" {
		t.Errorf("half messages are seen: %s", seen)
	}
	wrong := func(change func(h *remoting.EndTransactionRequest)) *remoting.EndTransactionRequest {
		h := endHeader(a, commit)
		change(h)
		return h
	}
	for _, c := range []struct {
		name   string
		h      *remoting.EndTransactionRequest
		code   int32
		remark string
	}{
		{"group", wrong(func(h *remoting.EndTransactionRequest) { h.ProducerGroup = "q" }), 1, "producer group wrong"},
		{"table offset", wrong(func(h *remoting.EndTransactionRequest) { h.TranStateTableOffset = 77 }), 1, "transaction state table offset wrong"},
		{"table offset of another", wrong(func(h *remoting.EndTransactionRequest) { h.TranStateTableOffset = b.QueueOffset }), 1, "transaction state table offset wrong"},
		{"log offset", wrong(func(h *remoting.EndTransactionRequest) { h.CommitLogOffset++ }), 1, "commit log offset wrong"},
		{"nothing there", wrong(func(h *remoting.EndTransactionRequest) { h.CommitLogOffset, h.TranStateTableOffset = 1<<40, 99 }), 1, "prepared transaction message failed"},
		{"negative", wrong(func(h *remoting.EndTransactionRequest) { h.CommitLogOffset, h.TranStateTableOffset = -1, -1 }), 1, "-1"},
		{"no decision at all", wrong(func(h *remoting.EndTransactionRequest) { h.CommitOrRollback = 5 }), 29, "commitOrRollback is 5"},
		{"unknown", endHeader(a, unknown), 0, ""},
		{"unknown, asked", wrong(func(h *remoting.EndTransactionRequest) {
			h.CommitOrRollback, h.FromTransactionCheck = unknown, true
		}), 0, ""},
		{"commit", endHeader(a, commit), 0, ""},
		{"commit again", endHeader(a, commit), 0, ""},
		{"rollback of what is committed", endHeader(a, rollback), 604, "committed"},
		{"rollback", endHeader(b, rollback), 0, ""},
		{"rollback again", endHeader(b, rollback), 0, ""},
		{"commit of what is rolled back", endHeader(b, commit), 604, "rolled back"},
	} {
		r := n.call(remoting.ReqEndTransaction, c.h, nil)
		if r.Code != c.code || !strings.Contains(r.Remark, c.remark) {
			t.Errorf("%s: %d %q", c.name, r.Code, r.Remark)
		}
	}
	if seen := n.visible("T"); seen != "a" {
		t.Errorf("seen: %q", seen)
	}
	m := records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil, nil))[0]
	if message.TransactionType(m.SysFlag) != commit || m.PreparedTransactionOffset != a.LogOffset || m.Tag() != "x" || m.Properties.Has("TRAN_MSG") || m.Properties.Has("REAL_TOPIC") {
		t.Errorf("the copy: %+v", m)
	}
}

// questions is a producer's connection and what it is asked.
func (n *node) questions(answer func(c *transport.Conn, h remoting.CheckTransactionStateRequest, m message.Message)) *transport.Conn {
	return n.connect(func(r *transport.Request) {
		var h remoting.CheckTransactionStateRequest
		if r.Code != remoting.ReqCheckTransactionState {
			return
		}
		if err := r.Decode(&h); err != nil {
			n.t.Error(err)
		}
		var m message.Message
		if _, err := message.DecodeStored(append([]byte(nil), r.Body...), &m); err != nil {
			n.t.Error(err)
		}
		answer(r.Conn, h, m)
	})
}

// TestCheckBack is R054, R086 and R087: who has sent one half message and nothing else is
// asked about it within the configured time; another member of the group is asked when it is
// gone; what that one says is final, and the first one's late commit is refused.
func TestCheckBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		defer n.stop()
		n.topic("T", 1)
		var asked []string
		first := n.questions(func(c *transport.Conn, h remoting.CheckTransactionStateRequest, m message.Message) {
			asked = append(asked, fmt.Sprint("first ", h.Topic, " ", string(m.Body), " ", m.Topic, " ", m.Properties.Value("PGROUP")))
			_ = c.Oneway(remoting.ReqEndTransaction, &remoting.EndTransactionRequest{Topic: m.Topic, ProducerGroup: "p", TranStateTableOffset: h.TranStateTableOffset,
				CommitLogOffset: h.CommitLogOffset, CommitOrRollback: unknown, FromTransactionCheck: true, MsgID: h.MsgID}, nil)
		})
		callOn(t, first, remoting.ReqSendMessageV2, halfHeader("T", "p", "UNIQ_KEY\x01K\x02"), []byte("x"))
		synctest.Wait()
		u := n.undecided(0)
		n.Clock.Advance(6 * time.Second)
		synctest.Wait()
		if fmt.Sprint(asked) != "[first T x T p]" {
			t.Fatalf("asked: %v", asked)
		}
		first.Close()
		second := n.questions(func(c *transport.Conn, h remoting.CheckTransactionStateRequest, m message.Message) {
			asked = append(asked, "second "+h.MsgID)
			_ = c.Oneway(remoting.ReqEndTransaction, &remoting.EndTransactionRequest{Topic: m.Topic, ProducerGroup: "p", TranStateTableOffset: h.TranStateTableOffset,
				CommitLogOffset: h.CommitLogOffset, CommitOrRollback: rollback, FromTransactionCheck: true, MsgID: h.MsgID}, nil)
		})
		callOn(t, second, remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: "second", ProducerDataSet: []remoting.ProducerData{{GroupName: "p"}}}))
		n.Clock.Advance(30 * time.Second)
		synctest.Wait()
		if fmt.Sprint(asked) != "[first T x T p second K]" {
			t.Fatalf("asked: %v", asked)
		}
		if r := n.call(remoting.ReqEndTransaction, endHeader(u, commit), nil); r.Code != remoting.ResIllegalOperation || !strings.Contains(r.Remark, "rolled back") {
			t.Errorf("late commit: %d %q", r.Code, r.Remark)
		}
		if seen := n.visible("T"); seen != "" {
			t.Errorf("seen: %s", seen)
		}
		n.Clock.Advance(time.Hour)
		synctest.Wait()
		if len(asked) != 2 {
			t.Errorf("what is decided is asked about: %v", asked)
		}
	})
}

// TestDiffLateDecisionCounts: Apache refuses a producer's own decision of a half message whose
// immunity is over, with code 604, though nobody has decided it yet.
func TestDiffLateDecisionCounts(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	u := n.half("T", "p", "x", "CHECK_IMMUNITY_TIME_IN_SECONDS\x015\x02")
	n.Clock.Advance(20 * time.Second)
	n.ok(remoting.ReqEndTransaction, endHeader(u, commit), nil, nil)
	if seen := n.visible("T"); seen != "x" {
		t.Errorf("seen: %q", seen)
	}
}

// TestDiffUnknownIsAnswered: Apache does not answer at all, and who waits for it waits in vain.
func TestDiffUnknownIsAnswered(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.ok(remoting.ReqEndTransaction, endHeader(n.half("T", "p", "x", ""), unknown), nil, nil)
}

// TestDiffAbsentProducersUseUpNoCheck: Apache counts a check that it could put to nobody, so a
// producer that is away for eight minutes is never asked.
func TestDiffAbsentProducersUseUpNoCheck(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.send("T", 0, "x", "TRAN_MSG\x01true\x02PGROUP\x01absent\x02")
	until(t, "dispatch", func() bool { return n.Store.LogMax() == n.Store.LogEnd() })
	u := n.undecided(0)
	n.Clock.Advance(time.Hour)
	if now := n.undecided(u.QueueOffset); now.Checks != 0 {
		t.Errorf("%+v", now)
	}
}

// TestResumeCheckHalfMessage: the msgId is the offset id of the record.
func TestResumeCheckHalfMessage(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	u := n.half("T", "p", "x", "")
	n.ok(remoting.ReqResumeCheckHalfMessage, &remoting.ResumeCheckHalfMessageRequest{Topic: "T", MsgID: message.OffsetID(n.StoreHost, u.LogOffset)}, nil, nil)
	for _, id := range []string{"", "nonsense", message.OffsetID(n.StoreHost, u.LogOffset+1)} {
		if r := n.call(remoting.ReqResumeCheckHalfMessage, &remoting.ResumeCheckHalfMessageRequest{Topic: "T", MsgID: id}, nil); r.Code != 1 || r.Remark == "" {
			t.Errorf("%q: %d %q", id, r.Code, r.Remark)
		}
	}
}
