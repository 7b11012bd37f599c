package brokerrpc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// connect is a client of its own with a handler for what the broker sends it.
func (n *node) connect(h transport.Handler) *transport.Conn {
	n.t.Helper()
	c := transport.NewClient(transport.ClientOptions{Options: transport.Options{Handler: h}, Dial: n.dial.Dial})
	n.t.Cleanup(func() { c.Close() })
	conn, err := c.Conn(context.Background(), n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return conn
}

func heartbeat(client, group string, topics ...string) []byte {
	d := remoting.HeartbeatData{ClientID: client, ProducerDataSet: []remoting.ProducerData{{GroupName: "producers"}}}
	c := remoting.ConsumerData{GroupName: group, ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromLastOffset}
	for _, t := range topics {
		c.SubscriptionDataSet = append(c.SubscriptionDataSet, remoting.SubscriptionData{Topic: t, SubString: "*", ExpressionType: "TAG", SubVersion: 7})
	}
	d.ConsumerDataSet = []remoting.ConsumerData{c}
	return remoting.Marshal(&d)
}

func callOn(t testing.TB, c *transport.Conn, code int32, h remoting.Header, body []byte) *remoting.Command {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := c.Call(ctx, code, h, body)
	if err != nil {
		t.Fatalf("%s: %v", remoting.CodeName(code), err)
	}
	return r
}

func TestLongPollIsAnsweredByTheNextMessage(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	h := pullHeader("g", "T", 0, 0)
	h.SysFlag |= remoting.PullSuspend
	h.SuspendTimeoutMillis = 20000
	for round := range 20 {
		h.QueueOffset = int64(round)
		answer := make(chan *remoting.Command)
		go func() { answer <- n.call(remoting.ReqPullMessage, h, nil) }()
		if round%2 == 0 { // else the message may come before, with or after the pull
			until(t, "the pull to wait", func() bool { return n.LongPoll.Waiting() == 1 })
		}
		n.send("T", 0, fmt.Sprint(round), "")
		r := <-answer
		if got := records(t, r.Body); r.Code != 0 || len(got) != 1 || string(got[0].Body) != fmt.Sprint(round) {
			t.Fatalf("round %d: %d %s", round, r.Code, r.Remark)
		}
	}
	// Nothing comes: 19 with the place to go on, at the deadline and not before.
	h.QueueOffset, h.SuspendTimeoutMillis = 20, 50
	began := time.Now()
	r := n.call(remoting.ReqPullMessage, h, nil)
	var a remoting.PullMessageResponse
	if err := r.Decode(&a); err != nil || r.Code != remoting.ResPullNotFound || a.NextBeginOffset != 20 || len(r.Body) != 0 {
		t.Errorf("%d %s %+v %v", r.Code, r.Remark, a, err)
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("answered after %v", took)
	}
}

func TestClosedConnectionWaitsNoLonger(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	c := n.connect(nil)
	h := pullHeader("g", "T", 0, 0)
	h.SysFlag |= remoting.PullSuspend
	h.SuspendTimeoutMillis = 600000
	for range 10 {
		if err := c.CallAsync(remoting.ReqPullMessage, h, nil, time.Minute, func(*remoting.Command, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "ten to wait", func() bool { return n.LongPoll.Waiting() == 10 })
	c.Close()
	until(t, "none to wait", func() bool { return n.LongPoll.Waiting() == 0 })
}

func TestPullAnswers(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	for range 3 {
		n.send("T", 0, "x", "TAGS\x01a\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 3 })
	off := group.New("off")
	off.ConsumeEnable = false
	if err := n.Groups.Put(off); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		tune      func(h *remoting.PullMessageRequest)
		code      int32
		remark    string
		next      int64
		forbidden int32
	}{
		{"too far", func(h *remoting.PullMessageRequest) { h.QueueOffset = 500 }, 21, "OFFSET_OVERFLOW_BADLY", 3, 0},
		{"at the end", func(h *remoting.PullMessageRequest) { h.QueueOffset = 3 }, 19, "OFFSET_OVERFLOW_ONE", 3, 0},
		{"empty queue", func(h *remoting.PullMessageRequest) { h.QueueID = 1 }, 19, "NO_MATCHED_LOGIC_QUEUE", 0, 0},
		{"empty queue, not at its beginning", func(h *remoting.PullMessageRequest) { h.QueueID, h.QueueOffset = 1, 5 }, 21, "NO_MATCHED_LOGIC_QUEUE", 0, 0},
		{"no tag fits", func(h *remoting.PullMessageRequest) { h.Subscription = "b" }, 20, "NO_MATCHED_MESSAGE", 3, 0},
		{"queue beyond", func(h *remoting.PullMessageRequest) { h.QueueID = 9 }, 29, "queueId[9]", 0, 0},
		{"unknown topic", func(h *remoting.PullMessageRequest) { h.Topic = "Nope" }, 17, "Nope", 0, 0},
		{"group offline", func(h *remoting.PullMessageRequest) { h.ConsumerGroup, h.SysFlag = "absent", 0 }, 24, "no member", 0, 0},
		{"group disabled", func(h *remoting.PullMessageRequest) { h.ConsumerGroup = "off" }, 16, "off", 0, 2},
		{"unknown filter", func(h *remoting.PullMessageRequest) { h.ExpressionType = "XPATH" }, 1, "XPATH", 0, 0},
	} {
		h := pullHeader("g", "T", 0, 0)
		c.tune(h)
		r := n.call(remoting.ReqPullMessage, h, nil)
		var a remoting.PullMessageResponse
		if err := r.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if r.Code != c.code || !strings.Contains(r.Remark, c.remark) || a.NextBeginOffset != c.next || a.ForbiddenType.Value != c.forbidden {
			t.Errorf("%s: %d %q %+v", c.name, r.Code, r.Remark, a)
		}
		if lite := n.call(remoting.ReqLitePullMessage, h, nil); lite.Code != r.Code {
			t.Errorf("%s: lite pull answers %d", c.name, lite.Code)
		}
	}
}

// Lite pull consumers have a code and a switch of their own.
func TestLitePullSwitch(t *testing.T) {
	n := startNode(t, vfs.NewMem(), func(b *config.Broker, _ *config.Store) { b.LitePullMessageEnable = false })
	n.topic("T", 1)
	if r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil); r.Code != remoting.ResPullNotFound {
		t.Errorf("pull: %d %q", r.Code, r.Remark)
	}
	r := n.call(remoting.ReqLitePullMessage, pullHeader("g", "T", 0, 0), nil)
	var a remoting.PullMessageResponse
	if err := r.Decode(&a); err != nil || r.Code != remoting.ResNoPermission || a.ForbiddenType.Value != 1 || !strings.Contains(r.Remark, "litePullMessageEnable") {
		t.Errorf("lite pull: %d %q %+v, %v", r.Code, r.Remark, a, err)
	}
}

func TestOffsets(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	n.send("T", 0, "x", "")
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 1 })
	ask := &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: 0}
	if r := n.call(remoting.ReqQueryConsumerOffset, ask, nil); r.Code != remoting.ResQueryNotFound {
		t.Errorf("history of an old queue: %d, want the consumer to decide", r.Code) // R059
	}
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: 0, CommitOffset: 1}, nil, nil)
	var a remoting.QueryConsumerOffsetResponse
	if n.ok(remoting.ReqQueryConsumerOffset, ask, nil, &a); a.Offset != 1 {
		t.Errorf("stored offset %d", a.Offset)
	}
	if r := n.call(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "Nope"}, nil); r.Code != remoting.ResTopicNotExist {
		t.Errorf("unknown topic: %d", r.Code)
	}
	// A reset: the next pull learns of it, commits until then are ignored.
	n.Offsets.Reset("g", "T", 0, 0)
	r := n.call(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", QueueID: 0, CommitOffset: 1}, nil)
	if r.Code != 0 || r.Remark != "Offset has been previously reset" {
		t.Errorf("commit during a reset: %d %q", r.Code, r.Remark)
	}
	r = n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 1), nil)
	var p remoting.PullMessageResponse
	if err := r.Decode(&p); err != nil || r.Code != remoting.ResPullOffsetMoved || r.Remark != "OFFSET_RESET" || p.NextBeginOffset != 0 {
		t.Errorf("pull after a reset: %d %q %+v %v", r.Code, r.Remark, p, err)
	}

	var low, high, byTime int64
	n.ok(remoting.ReqGetMinOffset, &remoting.GetMinOffsetRequest{Topic: "T"}, nil, offsetOf(&low))
	n.ok(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: "T"}, nil, offsetOf(&high))
	n.ok(remoting.ReqSearchOffsetByTimestamp, &remoting.SearchOffsetByTimestampRequest{Topic: "T", Timestamp: 1}, nil, offsetOf(&byTime))
	if low != 0 || high != 1 || byTime != 0 {
		t.Errorf("min %d, max %d, by time %d", low, high, byTime)
	}
	n.ok(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: "unknown", QueueID: 7}, nil, offsetOf(&high))
	var early remoting.GetEarliestMsgStoreTimeResponse
	n.ok(remoting.ReqGetEarliestMsgStoreTime, &remoting.GetEarliestMsgStoreTimeRequest{Topic: "unknown"}, nil, &early)
	if high != 0 || early.Timestamp != -1 {
		t.Errorf("unknown topic: max %d, earliest %d", high, early.Timestamp)
	}
}

// justOffset reads the field offset of any answer.
type justOffset struct{ p *int64 }

func offsetOf(p *int64) justOffset { return justOffset{p} }

func (h justOffset) Fields(v *remoting.Visitor) { v.Int64("offset", h.p, remoting.Required) }

// TestSendBackComesAgain sends a message back until it is dead: with retryMaxTimes 2 the
// group sees it three times.
func TestSendBackComesAgain(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	g := group.New("g")
	g.RetryMaxTimes = 2
	if err := n.Groups.Put(g); err != nil {
		t.Fatal(err)
	}
	a := n.send("T", 0, "x", "UNIQ_KEY\x01K\x02")
	read := func(topic string, offset int64) *message.Message {
		t.Helper()
		until(t, topic, func() bool { return n.Store.MaxOffset(topic, 0) > offset })
		got := records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", topic, 0, offset), nil, nil))
		if len(got) != 1 {
			t.Fatalf("%d messages in %s", len(got), topic)
		}
		return got[0]
	}
	m := read("T", 0)
	for attempt, level := range []time.Duration{10 * time.Second, 30 * time.Second} {
		n.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Offset: m.PhysicalOffset, Group: "g"}, nil, nil)
		until(t, "the delayed copy", func() bool { return n.Store.MaxOffset("SCHEDULE_TOPIC_XXXX", int32(attempt)+2) == 1 })
		n.Clock.Advance(level - time.Second)
		if end := n.Store.MaxOffset("%RETRY%g", 0); end != int64(attempt) {
			t.Fatalf("attempt %d came early", attempt+1)
		}
		n.Clock.Advance(time.Second)
		m = read("%RETRY%g", int64(attempt))
		if m.ReconsumeTimes != int32(attempt)+1 || m.Properties.Value(message.PropertyRetryTopic) != "T" ||
			m.Properties.Value(message.PropertyOriginMessageID) != a.MsgID || string(m.Body) != "x" || m.UniqueID() != "K" || m.Properties.Has(message.PropertyDelay) {
			t.Errorf("attempt %d: %+v", attempt+1, m)
		}
	}
	n.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Offset: m.PhysicalOffset, Group: "g", DelayLevel: 18}, nil, nil)
	m = read("%DLQ%g", 0) // R061: at once, whatever level was asked for
	if m.Properties.Value(message.PropertyRetryTopic) != "T" || m.Properties.Value(message.PropertyOriginMessageID) != a.MsgID {
		t.Errorf("dead letter: %+v", m)
	}
	if r := n.call(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Offset: 3, Group: "g"}, nil); r.Code != remoting.ResSystemError {
		t.Errorf("no record there: %d %q", r.Code, r.Remark)
	}
}

func TestHeartbeatsAndNotices(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	var mu sync.Mutex
	var heard []string
	hear := func(name string) transport.Handler {
		return func(r *transport.Request) {
			var h remoting.NotifyConsumerIDsChangedRequest
			if r.Code == remoting.ReqNotifyConsumerIDsChanged && r.Decode(&h) == nil {
				mu.Lock()
				heard = append(heard, name+" "+h.ConsumerGroup)
				mu.Unlock()
			}
		}
	}
	told := func(who string) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(heard, who) }
	}
	one := n.connect(hear("one"))
	r := callOn(t, one, remoting.ReqHeartBeat, nil, heartbeat("c1", "g", "T"))
	v2, _ := r.Ext.Get("IS_SUPPORT_HEART_BEAT_V2")
	changed, _ := r.Ext.Get("IS_SUB_CHANGE")
	if r.Code != 0 || v2 != "true" || changed != "true" {
		t.Errorf("heartbeat: %d, %s, %s", r.Code, v2, changed)
	}
	if _, ok := n.Topics.Get("%RETRY%g"); !ok {
		t.Error("no retry topic before the first heartbeat was answered")
	}
	two := n.connect(hear("two"))
	callOn(t, two, remoting.ReqHeartBeat, nil, heartbeat("c2", "g", "T"))
	until(t, "the first member to hear of the second", told("one g"))

	var list remoting.ConsumerListBody
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetConsumerListByGroup, &remoting.GetConsumerListByGroupRequest{ConsumerGroup: "g"}, nil, nil), &list); err != nil || fmt.Sprint(list.ConsumerIDList) != "[c1 c2]" {
		t.Errorf("members %v, %v", list.ConsumerIDList, err)
	}
	var conns remoting.ConsumerConnection
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetConsumerConnectionList, &remoting.GetConsumerConnectionListRequest{ConsumerGroup: "g"}, nil, nil), &conns); err != nil || len(conns.ConnectionSet) != 2 || conns.SubscriptionTable["T"].SubString != "*" || conns.ConsumeType != remoting.ConsumePassively {
		t.Errorf("connections %+v, %v", conns, err)
	}
	var producers remoting.ProducerConnection
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetProducerConnectionList, &remoting.GetProducerConnectionListRequest{ProducerGroup: "producers"}, nil, nil), &producers); err != nil || len(producers.ConnectionSet) != 2 {
		t.Errorf("producers %+v, %v", producers, err)
	}
	// A pull without an expression uses the heartbeat's.
	h := pullHeader("g", "T", 0, 0)
	h.SysFlag, h.Subscription = 0, ""
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != remoting.ResPullNotFound {
		t.Errorf("pull: %d %q", r.Code, r.Remark)
	}
	h.SubVersion = 8
	if r := n.call(remoting.ReqPullMessage, h, nil); r.Code != remoting.ResSubscriptionNotLatest {
		t.Errorf("pull with a newer subscription: %d %q", r.Code, r.Remark)
	}

	callOn(t, two, remoting.ReqUnregisterClient, &remoting.UnregisterClientRequest{ClientID: "c2", ConsumerGroup: "g", ProducerGroup: "producers"}, nil)
	if ids := n.Clients.ConsumerIDs("g"); fmt.Sprint(ids) != "[c1]" {
		t.Errorf("after it left: %v", ids)
	}
	one.Close()
	until(t, "the closed connection's member to go", func() bool { return len(n.Clients.ConsumerIDs("g")) == 0 })
	if r := n.call(remoting.ReqGetConsumerListByGroup, &remoting.GetConsumerListByGroupRequest{ConsumerGroup: "g"}, nil); r.Code != remoting.ResSystemError || !strings.Contains(r.Remark, "no consumer for this group") {
		t.Errorf("empty group: %d %q", r.Code, r.Remark)
	}
	if r := n.call(remoting.ReqHeartBeat, nil, []byte("{")); r.Code != remoting.ResInvalidParameter {
		t.Errorf("torn body: %d", r.Code)
	}
}

func TestQueueLocks(t *testing.T) {
	n := newNode(t)
	lock := func(client string, queues ...int32) (locked []int32) {
		b := remoting.LockBatchBody{ConsumerGroup: "g", ClientID: client}
		for _, q := range queues {
			b.MQSet = append(b.MQSet, remoting.MessageQueue{Topic: "T", BrokerName: n.Name, QueueID: q})
		}
		b.MQSet = append(b.MQSet, remoting.MessageQueue{Topic: "T", BrokerName: "another", QueueID: 0})
		var a remoting.LockBatchResponseBody
		if err := remoting.Unmarshal(n.ok(remoting.ReqLockBatchMQ, nil, remoting.Marshal(&b), nil), &a); err != nil {
			t.Fatal(err)
		}
		for _, q := range a.LockOKMQSet {
			locked = append(locked, q.QueueID)
		}
		return locked
	}
	if got := lock("a", 0, 1); fmt.Sprint(got) != "[0 1]" {
		t.Errorf("first: %v", got)
	}
	if got := lock("b", 1, 2); fmt.Sprint(got) != "[2]" {
		t.Errorf("second: %v", got)
	}
	b := remoting.LockBatchBody{ConsumerGroup: "g", ClientID: "a", MQSet: []remoting.MessageQueue{{Topic: "T", BrokerName: n.Name, QueueID: 1}}}
	n.ok(remoting.ReqUnlockBatchMQ, nil, remoting.Marshal(&b), nil)
	if got := lock("b", 1); fmt.Sprint(got) != "[1]" {
		t.Errorf("after unlock: %v", got)
	}
	// The group is orderly now: what it gives up becomes a dead letter.
	h := sendHeader("%RETRY%g", 0, "UNIQ_KEY\x01K\x02")
	h.ReconsumeTimes = 1
	n.ok(remoting.ReqSendMessageV2, h, []byte("x"), nil)
	until(t, "the dead letter", func() bool { return n.Store.MaxOffset("%DLQ%g", 0) == 1 })
}

func TestCheckClientConfig(t *testing.T) {
	n := newNode(t)
	check := func(kind, text string) int32 {
		b := remoting.CheckClientBody{ClientID: "c", Group: "g", SubscriptionData: &remoting.SubscriptionData{Topic: "T", ExpressionType: kind, SubString: text}}
		return n.call(remoting.ReqCheckClientConfig, nil, remoting.Marshal(&b)).Code
	}
	if code := check("TAG", "a || b"); code != 0 {
		t.Errorf("tags: %d", code)
	}
	if code := check("XPATH", "x"); code != remoting.ResSystemError {
		t.Errorf("unknown kind: %d", code)
	}
}

func TestLookUps(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	// R098: the sender's clock is far off; the server's counts.
	h := sendHeader("T", 0, "UNIQ_KEY\x01K1\x02KEYS\x01order-1 order-2\x02")
	h.BornTimestamp = time.Now().Add(-100 * time.Hour).UnixMilli()
	var a remoting.SendMessageResponse
	n.ok(remoting.ReqSendMessageV2, h, []byte("x"), &a)
	_, offset, err := message.ParseOffsetID(a.MsgID)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 1 })
	if got := records(t, n.ok(remoting.ReqViewMessageByID, &remoting.ViewMessageByIDRequest{Offset: offset}, nil, nil)); len(got) != 1 || string(got[0].Body) != "x" {
		t.Errorf("by id: %v", got)
	}
	now := time.Now().UnixMilli()
	for _, key := range []string{"order-2", "K1"} {
		q := &remoting.QueryMessageRequest{Topic: "T", Key: key, MaxNum: 10, BeginTimestamp: now - 60000, EndTimestamp: now + 60000}
		if got := records(t, n.ok(remoting.ReqQueryMessage, q, nil, nil)); len(got) != 1 || string(got[0].Body) != "x" {
			t.Errorf("by key %s: %v", key, got)
		}
	}
	r := n.call(remoting.ReqQueryMessage, &remoting.QueryMessageRequest{Topic: "T", Key: "no", MaxNum: 10, EndTimestamp: now}, nil)
	if r.Code != remoting.ResQueryNotFound || r.Remark != "can not find message, maybe time range not correct" {
		t.Errorf("not there: %d %q", r.Code, r.Remark)
	}
	if r := n.call(remoting.ReqViewMessageByID, &remoting.ViewMessageByIDRequest{Offset: 99999}, nil); r.Code != remoting.ResSystemError {
		t.Errorf("no record there: %d", r.Code)
	}
}

// TestRestart: topics, offsets, messages and delays survive a clean stop, and a stop that
// was none.
func TestRestart(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.send("T", 0, "a", "")
	n.send("T", 0, "later", "DELAY\x011\x02")
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil, nil)
	n.stop()
	n = startNode(t, fs)
	n.send("T", 0, "b", "")
	n.Clock.Advance(2 * time.Second)
	var a remoting.QueryConsumerOffsetResponse
	n.ok(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T"}, nil, &a)
	if a.Offset != 1 {
		t.Errorf("offset %d", a.Offset)
	}
	bodies := func(n *node) string {
		until(t, "three messages", func() bool { return n.Store.MaxOffset("T", 0) >= 3 })
		var list []string
		for _, m := range records(t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil, nil)) {
			list = append(list, string(m.Body))
		}
		slices.Sort(list)
		return fmt.Sprint(list)
	}
	if got := bodies(n); got != "[a b later]" {
		t.Errorf("messages %s", got)
	}
	// The process dies: what was written is there, and nothing is delivered twice.
	n2 := startNode(t, crash(fs))
	n2.Clock.Advance(10 * time.Second)
	if got := bodies(n2); got != "[a b later]" {
		t.Errorf("messages after a crash %s", got)
	}
}

func TestBrokerConfig(t *testing.T) {
	n := newNode(t)
	text := string(n.ok(remoting.ReqGetBrokerConfig, nil, nil, nil))
	if !strings.Contains(text, "brokerName=broker-a") || !strings.Contains(text, "autoCreateTopicEnable=true") {
		t.Errorf("configuration:\n%s", text)
	}
	n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("autoCreateTopicEnable=false\n"), nil)
	if n.Config.Get().AutoCreateTopicEnable {
		t.Error("the change has no effect")
	}
	for _, bad := range []string{"noSuchThing=1", "autoCreateTopicEnable=maybe", "brokerName=other", "defaultTopicQueueNums=0"} {
		if r := n.call(remoting.ReqUpdateBrokerConfig, nil, []byte("autoCreateTopicEnable=true\n"+bad)); r.Code == 0 {
			t.Errorf("%s was taken", bad)
		}
	}
	if n.Config.Get().AutoCreateTopicEnable {
		t.Error("a refused change has changed something")
	}
}

// TestConfigurationOnlyFromLoopback is R115.
func TestConfigurationOnlyFromLoopback(t *testing.T) {
	n := newNode(t)
	n.addr = "192.0.2.1:10911"
	l, err := n.dial.Listen(n.addr)
	if err != nil {
		t.Fatal(err)
	}
	server := transport.NewServer(transport.Options{Handler: New(Options{Broker: n.Broker}).Handle})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, l) }()
	defer func() { cancel(); <-served; server.Shutdown(context.Background()) }()
	r := n.call(remoting.ReqUpdateBrokerConfig, nil, []byte("autoCreateTopicEnable=false"))
	if r.Code != remoting.ResNoPermission || !n.Config.Get().AutoCreateTopicEnable {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
}

func TestTopicAndGroupAdministration(t *testing.T) {
	n := startNode(t, vfs.NewMem(), func(b *config.Broker, _ *config.Store) { b.AutoCreateSubscriptionGroup = false })
	put := func(name, attributes string) (int32, string) {
		r := n.call(remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: name, DefaultTopic: "TBW102", ReadQueueNums: 4, WriteQueueNums: 4,
			Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: attributes}, nil)
		return r.Code, r.Remark
	}
	for _, c := range []struct {
		name, attributes string
		code             int32
		remark           string
	}{
		{"orders", "+message.type=FIFO", 0, ""},
		{"a b", "", 29, ""},
		{" ", "", 29, ""},
		{strings.Repeat("x", 128), "", 29, ""},
		{"TBW102", "", 29, ""},
		{"mixed", "+message.type=MIXED", 29, "MIXED message type is not supported: enableMixedMessageType is off"},
		{"x1", "+foo=bar", 1, "unsupported key: foo"},
		{"x2", "+message.type=XX", 1, "value is not in set"},
		{"x3", "message.type=FIFO", 1, ""},
		{"x4", "-message.type", 1, ""},
	} {
		code, remark := put(c.name, c.attributes)
		if code != c.code || !strings.Contains(remark, c.remark) {
			t.Errorf("topic %q %q: %d %q", c.name, c.attributes, code, remark)
		}
	}
	var cfg remoting.TopicConfig
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetTopicConfig, &remoting.GetTopicConfigRequest{Topic: "orders"}, nil, nil), &cfg); err != nil || cfg.ReadQueueNums != 4 || cfg.Attributes["message.type"] != "FIFO" {
		t.Errorf("%+v %v", cfg, err)
	}
	if r := n.call(remoting.ReqGetTopicConfig, &remoting.GetTopicConfigRequest{Topic: "nope"}, nil); r.Code != 17 || r.Remark != "No topic in this broker. topic: nope" {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
	// The tools of 5.3 and before, the dashboard's too, ask without a header.
	for _, h := range []remoting.Header{nil, &remoting.GetAllTopicConfigRequest{}} {
		var all remoting.TopicConfigTable
		if err := remoting.Unmarshal(n.ok(remoting.ReqGetAllTopicConfig, h, nil, nil), &all); err != nil || all.TopicConfigTable["orders"].Perm != 6 {
			t.Errorf("%+v %v", all, err)
		}
	}

	g := remoting.DefaultSubscriptionGroupConfig("g")
	g.RetryMaxTimes = 3
	n.ok(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g), nil)
	var got remoting.SubscriptionGroupConfig
	if err := remoting.Unmarshal(n.ok(remoting.ReqGetSubscriptionGroupConfig, &remoting.GetSubscriptionGroupConfigRequest{Group: "g"}, nil, nil), &got); err != nil || got.RetryMaxTimes != 3 {
		t.Errorf("%+v %v", got, err)
	}
	if r := n.call(remoting.ReqGetSubscriptionGroupConfig, &remoting.GetSubscriptionGroupConfigRequest{Group: "nope"}, nil); r.Code != 26 {
		t.Errorf("unknown group: %d", r.Code)
	}
	g.GroupName = strings.Repeat("g", 121)
	if r := n.call(remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g)); r.Code != 29 {
		t.Errorf("long name: %d", r.Code)
	}
	for _, h := range []remoting.Header{nil, &remoting.GetAllSubscriptionGroupConfigRequest{}} {
		var groups remoting.SubscriptionGroupTable
		if err := remoting.Unmarshal(n.ok(remoting.ReqGetAllSubscriptionGroupConfig, h, nil, nil), &groups); err != nil || groups.SubscriptionGroupTable["g"].RetryMaxTimes != 3 {
			t.Errorf("%+v %v", groups, err)
		}
	}
}
