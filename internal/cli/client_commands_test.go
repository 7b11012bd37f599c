package cli

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// fakeServer is a name server and a broker that knows one topic.
type fakeServer struct {
	t    *testing.T
	addr string

	mu     sync.Mutex
	refuse bool // sends
	stops  bool // the next pop is refused
	sent   []remoting.SendMessageRequest
	body   []string
	acks   []remoting.AckMessageRequest
	waits  []message.Message // handed out by the next pops
	made   []remoting.UpdateAndCreateTopicRequest

	popState remoting.PopState
	dead     map[string]remoting.TopicOffset // dead-letter topics of one queue
	timers   remoting.Timers
	settings []config.Property // which no request changes

	transactions remoting.TransactionList
	ended        []remoting.EndTransactionRequest
	changed      []remoting.ChangeMessageInvisibleTimeRequest
}

func startFake(t *testing.T) *fakeServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{t: t, addr: l.Addr().String()}
	s := transport.NewServer(transport.Options{Handler: f.handle})
	go s.Serve(t.Context(), l)
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	return f
}

func (f *fakeServer) handle(r *transport.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	decode := func(h remoting.Header) {
		if err := r.Decode(h); err != nil {
			f.t.Error(err)
		}
	}
	brokers := []remoting.BrokerData{{BrokerName: "b", Cluster: "c", BrokerAddrs: map[int64]string{0: f.addr}}}
	switch r.Code {
	case remoting.ReqGetRouteInfoByTopic:
		var h remoting.GetRouteInfoByTopicRequest
		decode(&h)
		if h.Topic != "orders" {
			r.Responder().Reply(remoting.ResTopicNotExist, "no", nil, nil)
			return
		}
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.TopicRouteData{
			BrokerDatas: brokers,
			QueueDatas:  []remoting.QueueData{{BrokerName: "b", Perm: 6, ReadQueueNums: 2, WriteQueueNums: 2}},
		}))
	case remoting.ReqGetBrokerClusterInfo:
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.ClusterInfo{
			BrokerAddrTable:  map[string]remoting.BrokerData{"b": brokers[0]},
			ClusterAddrTable: map[string][]string{"c": {"b"}},
		}))
	case remoting.ReqUpdateAndCreateTopic:
		var h remoting.UpdateAndCreateTopicRequest
		decode(&h)
		f.made = append(f.made, h)
		r.Responder().Reply(remoting.ResSuccess, "", nil, nil)
	case remoting.ReqSendMessageV2:
		h := remoting.SendMessageRequest{V2: true}
		decode(&h)
		h.Properties = strings.Clone(h.Properties)
		if f.refuse {
			r.Responder().Reply(remoting.ResMessageIllegal, "no", nil, nil)
			return
		}
		f.sent, f.body = append(f.sent, h), append(f.body, string(r.Body))
		r.Responder().Reply(remoting.ResSuccess, "", &remoting.SendMessageResponse{MsgID: "x"}, nil)
	case remoting.ReqPopMessage:
		if f.stops {
			f.stops = false
			r.Responder().Reply(remoting.ResServiceNotAvailable, "the server is shutting down", nil, nil)
			return
		}
		f.pop(r)
	case remoting.ReqAckMessage:
		var h remoting.AckMessageRequest
		decode(&h)
		f.acks = append(f.acks, h)
		r.Responder().Reply(remoting.ResSuccess, "", nil, nil)
	case remoting.ReqBolideGetTimers:
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&f.timers))
	case remoting.ReqGetBrokerConfig:
		r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetBrokerConfigResponse{}, config.FormatProperties(f.settings))
	case remoting.ReqUpdateBrokerConfig:
		r.Responder().Reply(remoting.ResSuccess, "", nil, nil)
	case remoting.ReqGetBrokerRuntimeInfo:
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.KVTable{}))
	case remoting.ReqBolideGetPopState:
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&f.popState))
	case remoting.ReqBolideListTransactions:
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&f.transactions))
	case remoting.ReqEndTransaction:
		var h remoting.EndTransactionRequest
		decode(&h)
		f.ended = append(f.ended, h)
		r.Responder().Reply(remoting.ResSuccess, "", nil, nil)
	case remoting.ReqChangeMessageInvisibleTime:
		var h remoting.ChangeMessageInvisibleTimeRequest
		decode(&h)
		f.changed = append(f.changed, h)
		r.Responder().Reply(remoting.ResSuccess, "", &remoting.ChangeMessageInvisibleTimeResponse{}, nil)
	case remoting.ReqGetAllTopicListFromNameServer:
		list := []string{"orders", "c", "b", "%RETRY%g"}
		for topic := range f.dead {
			list = append(list, topic)
		}
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.TopicList{TopicList: list}))
	case remoting.ReqGetTopicStatsInfo:
		var h remoting.GetTopicStatsInfoRequest
		decode(&h)
		r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.TopicStatsTable{
			OffsetTable: map[remoting.MessageQueue]remoting.TopicOffset{{Topic: h.Topic, BrokerName: "b"}: f.dead[h.Topic]}}))
	default:
		r.Responder().Reply(remoting.ResRequestCodeNotSupported, "", nil, nil)
	}
}

// pop hands out the messages of one queue that come next, with their start offset.
func (f *fakeServer) pop(r *transport.Request) {
	var h remoting.PopMessageRequest
	if err := r.Decode(&h); err != nil {
		f.t.Error(err)
	}
	var (
		records []byte
		offsets []int64
		first   message.Message
	)
	for len(f.waits) > 0 && len(offsets) < int(h.MaxMsgNums) {
		m := f.waits[0]
		if len(offsets) == 0 {
			first = m
		} else if m.Topic != first.Topic || m.QueueID != first.QueueID {
			break
		}
		f.waits = f.waits[1:]
		var err error
		if records, err = message.AppendStored(records, &m); err != nil {
			f.t.Error(err)
		}
		offsets = append(offsets, m.QueueOffset)
	}
	if len(offsets) == 0 {
		r.Responder().Reply(remoting.ResPollingTimeout, "", nil, nil)
		return
	}
	q := receipt.Queue{RetryFlag: retryFlag(first.Topic, "orders"), QueueID: first.QueueID}
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.PopMessageResponse{
		PopTime: 1000, InvisibleTime: 2000, ReviveQid: 3,
		StartOffsetInfo: string(receipt.AppendStartOffset(nil, q, first.QueueOffset)),
		MsgOffsetInfo:   string(receipt.AppendOffsets(nil, q, offsets)),
	}, records)
}

func run(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), args, strings.NewReader(in), &o, &e)
	return o.String(), e.String(), code
}

func TestProduceSendsEveryLine(t *testing.T) {
	f := startFake(t)
	out, errs, code := run(t, "one\ntwo\nthree", "produce", "orders", "-n", f.addr, "--tag", "A", "--key", "k", "--property", "color=red")
	if code != 0 || len(strings.Fields(out)) != 3 {
		t.Fatalf("%d: %q %q", code, out, errs)
	}
	if strings.Join(f.body, " ") != "one two three" {
		t.Errorf("bodies %q", f.body)
	}
	queues := map[int32]bool{}
	for i, h := range f.sent {
		queues[h.QueueID] = true
		p := message.Properties(h.Properties)
		if p.Value("TAGS") != "A" || p.Value("KEYS") != "k" || p.Value("color") != "red" || p.Value("UNIQ_KEY") != strings.Fields(out)[i] {
			t.Errorf("properties %q", h.Properties)
		}
	}
	if len(queues) != 2 {
		t.Errorf("queues used: %v", queues)
	}
}

// TestProduceBeginsAnywhere: the messages of many calls go to all queues too.
func TestProduceBeginsAnywhere(t *testing.T) {
	f := startFake(t)
	queues := map[int32]bool{}
	for range 64 { // the queue of each is one of two, at random
		if _, errs, code := run(t, "", "produce", "orders", "-n", f.addr, "--body", "x"); code != 0 {
			t.Fatal(errs)
		}
		queues[f.sent[len(f.sent)-1].QueueID] = true
		if len(queues) == 2 {
			return
		}
	}
	t.Errorf("queues used: %v", queues)
}

// TestProduceLeavesOutEmptyLines: the lines around them are sent.
func TestProduceLeavesOutEmptyLines(t *testing.T) {
	f := startFake(t)
	out, errs, code := run(t, "one\n\n\r\ntwo\n", "produce", "orders", "-n", f.addr)
	if code != 0 || len(strings.Fields(out)) != 2 || strings.Join(f.body, " ") != "one two" || errs != "2 empty lines left out: brokers refuse messages without a body\n" {
		t.Errorf("%d: %q %q, sent %q", code, out, errs, f.body)
	}
	f.refuse = true
	out, errs, code = run(t, "\none\ntwo", "produce", "orders", "-n", f.addr)
	if code != 1 || out != "" || !strings.HasPrefix(errs, "1 empty line left out: ") || !strings.Contains(errs, "bolide: line 2 of standard input: "+f.addr+" answers MESSAGE_ILLEGAL (13): no\n") {
		t.Errorf("%d: %q %q", code, out, errs)
	}
	if _, errs, _ := run(t, "one\n"+strings.Repeat("x", maxLine+1), "produce", "orders", "-n", startFake(t).addr); errs != "bolide: line 2 of standard input: longer than 4194304 bytes\n" {
		t.Errorf("a line that is too long: %q", errs)
	}
}

// TestProduceTellsOfNewTopics: that a topic is made is said when it is.
func TestProduceTellsOfNewTopics(t *testing.T) {
	at := startNode(t)
	if _, errs, code := run(t, "", "produce", "fresh", "-n", at, "--body", "x", "--at", "99999999999999"); code != 1 || strings.Contains(errs, "new") || strings.Count(errs, "\n") != 1 {
		t.Errorf("refused: %d %q", code, errs)
	}
	if out, errs, code := run(t, "1\n2\n", "produce", "fresh", "-n", at); code != 0 || errs != "topic fresh was new: broker-a has made it\n" || strings.Count(out, "\n") != 2 {
		t.Errorf("taken: %d %q %q", code, out, errs)
	}
	if _, errs, code := run(t, "", "produce", "fresh", "-n", at, "--body", "x"); code != 0 || errs != "" {
		t.Errorf("there already: %d %q", code, errs)
	}
}

func TestProduceKeepsMessageGroupsTogether(t *testing.T) {
	f := startFake(t)
	if _, errs, code := run(t, "1\n2\n3\n4", "produce", "orders", "-n", f.addr, "--message-group", "g"); code != 0 {
		t.Fatal(errs)
	}
	for _, h := range f.sent {
		if h.QueueID != f.sent[0].QueueID || message.Properties(h.Properties).Value("__SHARDINGKEY") != "g" {
			t.Errorf("queue %d, properties %q", h.QueueID, h.Properties)
		}
	}
}

func TestConsumePrintsAndAcknowledges(t *testing.T) {
	f := startFake(t)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write([]byte("packed"))
	_ = z.Close()
	f.waits = []message.Message{
		{Topic: "orders", QueueID: 1, QueueOffset: 7, Body: []byte("plain")},
		{Topic: "%RETRY%g_orders", QueueOffset: 8, Body: []byte("again")},
		{Topic: "orders", QueueOffset: 9, SysFlag: message.SysCompressed, Body: packed.Bytes()},
		{Topic: "orders", QueueOffset: 10, Body: []byte("own"), Properties: "POP_CK\x0110 5 6 7 2 b 0 10\x02"},
	}
	out, errs, code := run(t, "", "consume", "orders", "-n", f.addr, "-g", "g", "--max", "4")
	if code != 0 || out != "plain\nagain\npacked\nown\n" {
		t.Fatalf("%d: %q %q", code, out, errs)
	}
	var got []string
	for _, a := range f.acks {
		got = append(got, a.Topic+": "+a.ExtraInfo)
	}
	want := []string{
		"orders: 7 1000 2000 3 0 b 1 7",
		"%RETRY%g_orders: 8 1000 2000 3 1 b 0 8",
		"orders: 9 1000 2000 3 0 b 0 9",
		"%RETRY%g+orders: 10 5 6 7 2 b 0 10",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("acknowledged\n%s", strings.Join(got, "\n"))
	}
}

func TestTopicCreate(t *testing.T) {
	f := startFake(t)
	out, errs, code := run(t, "", "admin", "topic", "create", "orders", "--type", "FIFO", "--queues", "3", "-n", f.addr)
	if code != 0 || !strings.Contains(out, "orders") {
		t.Fatalf("%q %q", out, errs)
	}
	if len(f.made) != 1 || f.made[0].Attributes != "+message.type=FIFO" || f.made[0].WriteQueueNums != 3 {
		t.Errorf("%+v", f.made)
	}
}

func TestTopicListLeavesOutWhatNobodyMade(t *testing.T) {
	f := startFake(t)
	if out, errs, code := run(t, "", "admin", "topic", "list", "-n", f.addr); code != 0 || out != "orders\n" {
		t.Errorf("%d: %q %q", code, out, errs)
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for _, args := range [][]string{{"admin", "topic", "list"}, {"consume", "orders"}, {"bench", "send"}} {
		out, errs, code := run(t, "", append(args, "-n", addr)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, "bolide: nothing listens on "+addr) || !strings.HasSuffix(errs, "(the address is from --namesrv)\n") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %q %q", args, code, out, errs)
		}
	}
	if _, errs, code := run(t, "", "bench", "send", "--protocol", "grpc", "--grpc", addr); code != 1 || !strings.HasPrefix(errs, "bolide: nothing listens on "+addr) {
		t.Errorf("bench over gRPC: %d, %q", code, errs)
	}
}

func TestClientCommandsSayWhy(t *testing.T) {
	f := startFake(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"produce", "none", "-b", "x"}, "topic none does not exist"},
		{[]string{"produce", "bad name", "-b", "x"}, "letters and digits"},
		{[]string{"produce", "orders", "-b", "x", "--property", "KEYS=x"}, "reserved, --key sets it"},
		{[]string{"produce", "orders", "-b", "x", "--property", "__SHARDINGKEY=x"}, "--message-group sets it"},
		{[]string{"produce", "orders", "-b", "x", "--property", "UNIQ_KEY=x"}, "reserved"},
		{[]string{"produce", "orders", "-b", "x", "--delay", "1s", "--priority", "0"}, "--delay and --priority: a message has one of them"},
		{[]string{"produce", "orders", "-b", "x", "--at", "noon"}, "--at \"noon\" is not a time"},
		{[]string{"produce", "orders", "-b", ""}, "--body is empty"},
		{[]string{"produce", "orders", "-b", "x", "--delay", "-1s"}, "--delay is 0 to"},
		{[]string{"produce", "orders", "-b", "x", "--property", "color"}, "NAME=VALUE"},
		{[]string{"produce", "orders", "-b", "x", "--key", "a\x02b"}, "separator"},
		{[]string{"consume", "none"}, "topic none does not exist"},
		{[]string{"consume", "orders", "--tag", "||"}, "names no tag"},
		{[]string{"admin", "topic", "create", "orders", "--type", "odd"}, "normal, fifo"},
		{[]string{"admin", "topic", "create"}, "needs a TOPIC"},
		{[]string{"produce", "orders", "more", "-b", "x"}, "takes one TOPIC"},
		{[]string{"admin", "topic", "craete", "orders"}, "did you mean create?"},
		{[]string{"admin", "topic", "delete", "none"}, "topic none does not exist"},
		{[]string{"admin", "group", "delete", "CID_RMQ_SYS_TRANS"}, "group CID_RMQ_SYS_TRANS is the server's own"},
		{[]string{"produce", "orders", "--bdy", "x"}, "bolide produce --help"},
		{[]string{"bench", "sned"}, "did you mean send?"},
		{[]string{"admin", "topic", "create", "orders", "--queues", "0"}, "--queues is 1 to 65535, not \"0\""},
		{[]string{"admin", "topic", "create", "orders", "--queues", "abc"}, "--queues is a whole number, 1 to 65535"},
		{[]string{"admin", "timer", "--limit", "-1"}, "--limit is 0 to 10000"},
		{[]string{"consume", "orders", "--max", "-1"}, "--max is 0 to"},
		{[]string{"consume", "orders", "--invisible", "-5s"}, "--invisible is 1s to 72h"},
		{[]string{"consume", "orders", "--idle", "2"}, "--idle is a time with its unit, such as 500ms, 2s"},
		{[]string{"admin", "dlq", "redrive", "g", "--rate", "-1"}, "--rate is 0 to"},
		{[]string{"admin", "dlq", "list", "g", "--from", "-1"}, "--from is 0 or more"},
		{[]string{"server", "extra"}, "bolide server takes no arguments, not \"extra\""},
		{[]string{"nonsense"}, "bolide --help lists the commands"},
	} {
		args := c.args
		if c.args[0] != "nonsense" && c.args[0] != "server" {
			args = append(args, "-n", f.addr)
		}
		_, errs, code := run(t, "", args...)
		if code != 1 || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %q", c.args, code, errs)
		}
	}
}

// TestAddressesOfServers: what can be no address is refused before anything is done.
func TestAddressesOfServers(t *testing.T) {
	for _, at := range []string{"foo", "host:99999", "host:0", ":9876", "a:1;b"} {
		for _, args := range [][]string{
			{"admin", "topic", "list", "-n", at}, {"server", "--namesrv", at}, {"produce", "orders", "--namesrv", at}, {"bench", "send", "-n", at},
		} {
			_, errs, code := run(t, "", args...)
			if want := fmt.Sprintf("bolide: --namesrv is HOST:PORT, such as 127.0.0.1:9876, not %q\n", at); code != 1 || errs != want {
				t.Errorf("%q: %d, %q", args, code, errs)
			}
		}
	}
}

// TestProduceTakesEveryQueue: messages without a group go to all queues of all brokers in
// turn.
func TestProduceTakesEveryQueue(t *testing.T) {
	at := []queues{{broker: "a", write: 4}, {broker: "b", write: 2}}
	var f produceFlags
	counts := map[string]int{}
	for range 12 {
		broker, queue := f.choose(at)
		counts[fmt.Sprint(broker.broker, queue)]++
	}
	if got := fmt.Sprint(counts); got != "map[a0:2 a1:2 a2:2 a3:2 b0:2 b1:2]" {
		t.Error(got)
	}
	f.messageGroup = "g"
	broker, queue := f.choose(at)
	for range 3 {
		if again, q := f.choose(at); again.broker != broker.broker || q != queue {
			t.Errorf("a group went to %s %d and %s %d", broker.broker, queue, again.broker, q)
		}
	}
}

// TestProduceKinds: flags make messages of every kind that a topic can be for, but transactions,
// and a word is said where they do not fit the topic.
func TestProduceKinds(t *testing.T) {
	at := startNode(t)
	for _, kind := range []string{"normal", "fifo", "delay", "transaction", "priority", "lite"} {
		runLine(t, 0, "admin", "topic", "create", kind, "--type", kind, "-n", at)
	}
	for _, c := range []struct{ line, warning string }{
		{"normal --key a --key b", ""},
		{"fifo --message-group g", ""},
		{"delay --delay 1h", ""},
		{"delay --at 2030-05-04T12:00:00Z", "TOO FAR"},
		{"priority --priority 3", ""},
		{"lite --lite l", ""},
		{"fifo", "topic fifo is of type fifo, and these messages are of type normal, which gRPC producers are refused for; --message-group makes them fifo"},
		{"transaction", "a producer with transactions"},
		{"normal --delay 1h", "topic normal is of type normal, and these messages are of type delay"},
	} {
		var out, errs strings.Builder
		code := Main(t.Context(), append([]string{"produce", "--body", "x", "-n", at}, strings.Fields(c.line)...), strings.NewReader(""), &out, &errs)
		if c.warning == "TOO FAR" { // the server looks at it
			if code != 1 || !strings.Contains(errs.String(), "answers") {
				t.Errorf("%s: %d %s", c.line, code, errs.String())
			}
			continue
		}
		if code != 0 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(errs.String(), c.warning) || (c.warning == "") != (errs.Len() == 0) {
			t.Errorf("%s: %d %q %q", c.line, code, out.String(), errs.String())
		}
	}
	if got := runLine(t, 0, "admin", "timer", "delay", "-n", at); !strings.Contains(got, "delay on broker-a: 1 wait") {
		t.Errorf("timers: %s", got)
	}
	if got := runLine(t, 0, "consume", "normal", "--max", "1", "--json", "-n", at); !strings.Contains(got, `"KEYS":"a b"`) {
		t.Errorf("keys: %s", got)
	}
}

// syncedBuffer is read while somebody writes.
type syncedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}

// TestConsumeOutlivesItsBroker: a server is stopped and started again while a consumer runs.
func TestConsumeOutlivesItsBroker(t *testing.T) {
	dir := t.TempDir()
	start := func(namesrv, broker string) (string, string, func() string) {
		ready := filepath.Join(dir, "ready.json")
		args := []string{"server", "--data", filepath.Join(dir, "data"), "--ready-file", ready,
			"--namesrv-addr", namesrv, "--broker-addr", broker, "--grpc-addr", "127.0.0.1:0", "--proxy-addr", "127.0.0.1:0"}
		at, stop := serve(t, ready, args)
		return at.Namesrv, at.Broker, stop
	}
	at, broker, stop := start("127.0.0.1:0", "127.0.0.1:0")
	do := func(in string, args ...string) {
		t.Helper()
		if out, errs, code := run(t, in, append(args, "-n", at)...); code != 0 {
			t.Fatalf("%v: %s%s", args, out, errs)
		}
	}
	do("", "admin", "topic", "create", "orders")
	do("before", "produce", "orders")
	var out, errs syncedBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- Main(t.Context(), []string{"consume", "orders", "--max", "2", "-n", at}, strings.NewReader(""), &out, &errs)
	}()
	eventually(t, "the first message", func() bool { return out.String() == "before\n" })
	stop()
	eventually(t, "word of the broker that is gone", func() bool { return strings.Contains(errs.String(), "asking again") })
	_, _, stop = start(at, broker)
	defer stop()
	do("after", "produce", "orders")
	if code := <-ended; code != 0 || out.String() != "before\nafter\n" || strings.Count(errs.String(), "asking again") != 1 {
		t.Errorf("code %d: %s%s", code, &out, &errs)
	}
}

// TestConsumeFromAStoppingBroker: one that says that it stops is asked again, as one that is gone.
func TestConsumeFromAStoppingBroker(t *testing.T) {
	f := startFake(t)
	f.stops = true
	f.waits = []message.Message{{Topic: "orders", Body: []byte("a")}}
	out, errs, code := run(t, "", "consume", "orders", "--max", "1", "-n", f.addr)
	if code != 0 || out != "a\n" || !strings.Contains(errs, "shutting down; asking again") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

// interrupt is Ctrl-C at the first line.
type interrupt struct {
	bytes.Buffer
	now func()
}

func (i *interrupt) Write(p []byte) (int, error) {
	i.now()
	return i.Buffer.Write(p)
}

// TestConsumeGivesBack: what was printed when Ctrl-C comes is acknowledged, what was received
// and not printed goes back, the last one first.
func TestConsumeGivesBack(t *testing.T) {
	f := startFake(t)
	for i := range 3 {
		f.waits = append(f.waits, message.Message{Topic: "orders", QueueOffset: int64(i), Body: []byte{'a' + byte(i)}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupt{now: cancel}
	code := Main(ctx, []string{"consume", "orders", "-n", f.addr}, strings.NewReader(""), out, io.Discard)
	f.mu.Lock()
	defer f.mu.Unlock()
	var back []int64
	for _, c := range f.changed {
		back = append(back, c.Offset)
	}
	printed := out.Len() / 2
	want := []int64{2, 1, 0}[:3-printed] // who prints may see the next message before the end
	if code != 0 || printed < 1 || len(f.acks) != printed || !slices.Equal(back, want) {
		t.Errorf("code %d, printed %q, %d acks, given back %v", code, out.String(), len(f.acks), back)
	}
}

// TestVersion: it is told in both ways that people ask for it.
func TestVersion(t *testing.T) {
	want := runLine(t, 0, "version")
	if got := runLine(t, 0, "--version"); got != want || !strings.HasPrefix(got, "bolide ") {
		t.Errorf("%q, %q", got, want)
	}
}
