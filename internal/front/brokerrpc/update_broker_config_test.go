package brokerrpc

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// probe shows that a setting is live: what see answers is from before the change, and
// becomes to after it, on the same running broker.
type probe struct {
	value    string
	prepare  func(n *node)
	see      func(n *node) any
	from, to any
}

// registration are the settings that are read anew at each registration; package register
// is on the other side of the broker, and its tests are those of namesrvrpc and node.
var registration = []string{"namesrvAddr", "registerNameServerPeriod", "registerBrokerTimeoutMills", "compressedRegister", "forceRegister"}

// rounds are the settings that the loops of lite topics read anew in each round; the
// transcripts of package lite show what they do.
var rounds = []string{"liteTtlCheckInterval", "minLiteTTl", "liteSubscriptionCheckInterval", "liteSubscriptionCheckTimeoutMills"}

// TestEverySettingIsLive walks through all settings that UPDATE_BROKER_CONFIG may change:
// each changes what the broker does, at once and without a start.
func TestEverySettingIsLive(t *testing.T) {
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	var all []string
	for _, target := range []any{&bc, &sc} {
		typ := reflect.TypeOf(target).Elem()
		for i := range typ.NumField() {
			if tag := typ.Field(i).Tag; tag.Get("fixed") != "true" && tag.Get("idle") == "" {
				all = append(all, tag.Get("prop"))
			}
		}
	}
	for name := range probes {
		if !slices.Contains(all, name) {
			t.Errorf("%s can't be changed, or has no effect: its probe is in vain", name)
		}
	}
	for _, name := range all {
		if slices.Contains(registration, name) || slices.Contains(rounds, name) {
			continue
		}
		p, ok := probes[name]
		if !ok {
			t.Errorf("nothing shows that %s is live", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				defer n.stop()
				n.topic("T", 1)
				if p.prepare != nil {
					p.prepare(n)
				}
				if got := p.see(n); got != p.from {
					t.Errorf("before: %v, want %v", got, p.from)
				}
				n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte(name+"="+p.value), nil)
				if got := p.see(n); got != p.to {
					t.Errorf("after %s=%s: %v, want %v", name, p.value, got, p.to)
				}
			})
		})
	}
}

// What can be changed over the wire names no path and starts no process: of texts there
// are these four alone, and a new one has to be looked at before it joins them.
func TestNoPathCanBeChanged(t *testing.T) {
	texts := []string{"namesrvAddr", "regionId", "defaultMessageRequestMode", "deleteWhen"}
	n := newNode(t)
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	for _, target := range []any{&bc, &sc} {
		v := reflect.ValueOf(target).Elem()
		for i := range v.NumField() {
			tag, name := v.Type().Field(i).Tag, v.Type().Field(i).Tag.Get("prop")
			if tag.Get("fixed") == "true" {
				r := n.call(remoting.ReqUpdateBrokerConfig, nil, fmt.Appendf(nil, "%s=%v", name, v.Field(i).Interface()))
				if r.Code != remoting.ResNoPermission || !strings.Contains(r.Remark, name) {
					t.Errorf("%s, which is read at the start: %d %q", name, r.Code, r.Remark)
				}
			} else if v.Field(i).Kind() == reflect.String && !slices.Contains(texts, name) {
				t.Errorf("%s is a text that can be changed over the wire", name)
			}
		}
	}
	for _, name := range []string{"rocketmqHome", "storePathCommitLog", "brokerConfigPath", "configStorePath", "tlsKeyPath", "filterServerNums", "messageStorePlugIn", "transferMsgByHeap"} {
		if r := n.call(remoting.ReqUpdateBrokerConfig, nil, []byte(name+"=/tmp/x")); r.Code == 0 {
			t.Errorf("%s was taken", name)
		}
	}
}

// A setting that does nothing here is refused with the reason, unless it asks for what is.
func TestIdleSettingsSayWhy(t *testing.T) {
	n := newNode(t)
	if r := n.call(remoting.ReqUpdateBrokerConfig, nil, []byte("reviveQueueNum=4")); r.Code == 0 || !strings.Contains(r.Remark, "no revive queues") {
		t.Errorf("%d %q", r.Code, r.Remark)
	}
	n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("reviveQueueNum=8"), nil)
}

// newLight is the code that a message for a light queue gets that is not there yet.
func newLight(n *node) any {
	queue := fmt.Sprintf("%%LMQ%%%d", n.Store.Lights())
	return n.call(remoting.ReqSendMessageV2, sendHeader("T", 0, "INNER_MULTI_DISPATCH\x01"+queue+"\x02"), []byte("x")).Code
}

// lightEnd is the number of messages in a light queue after one more was sent to it.
func lightEnd(n *node) any {
	n.send("T", 0, "x", "INNER_MULTI_DISPATCH\x01%LMQ%q\x02")
	until(n.t, "dispatch", func() bool { return n.Store.LogMax() == n.Store.LogEnd() })
	return n.Store.MaxOffset("%LMQ%q", 0)
}

// secondLite subscribes a client to one lite topic more than it has.
func secondLite(n *node) any {
	err := n.Lite.Sync(lite.Subscription{ClientID: "c", Group: "lg", Topic: "Parent", Lites: []string{fmt.Sprint("l", n.Clock.NowMilli())}})
	n.Clock.Advance(time.Second)
	return errors.Is(err, lite.ErrQuota)
}

// sendIDs sends messages with these ids one after the other and tells where the last one is.
func sendIDs(ids ...string) func(n *node) any {
	return func(n *node) (at any) {
		for _, id := range ids {
			at = n.send("T", 0, "x", "UNIQ_KEY\x01"+id+"\x02").QueueOffset
		}
		return at
	}
}

// logFiles fills several of them, lets hours pass, and has old ones deleted at another hour than
// now. So much of the disk is used, in percent.
func logFiles(hours int, used uint64) func(n *node) {
	return func(n *node) {
		for range 200 {
			n.send("T", 0, strings.Repeat("x", 30<<10), "")
		}
		n.Clock.Advance(time.Duration(hours) * time.Hour)
		other := (n.Clock.Now().Hour() + 12) % 24
		n.ok(remoting.ReqUpdateBrokerConfig, nil, fmt.Appendf(nil, "deleteWhen=%d", other), nil)
		n.fs.(*vfs.MemFS).TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: (100 - used) << 25, UsedBytes: used << 25, TotalBytes: 100 << 25})
	}
}

// fileGoes waits for some looks at the disk, and reports whether a log file was deleted.
func fileGoes(n *node) any {
	before := n.Store.LogMin()
	time.Sleep(30 * time.Second)
	return n.Store.LogMin() > before
}

const everyHour = "0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23"

var probes = map[string]probe{
	"fileReservedTime": {value: "24", prepare: func(n *node) {
		logFiles(30, 10)(n)
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("deleteWhen="+everyHour), nil)
	}, see: fileGoes, from: false, to: true},
	"deleteWhen":              {value: everyHour, prepare: logFiles(80, 10), see: fileGoes, from: false, to: true},
	"diskMaxUsedSpaceRatio":   {value: "60", prepare: logFiles(80, 70), see: fileGoes, from: false, to: true},
	"cleanFileForciblyEnable": {value: "false", prepare: logFiles(0, 88), see: fileGoes, from: true, to: false},
	"maxLiteSubscriptionCount": {value: "1", prepare: func(n *node) {
		if err := n.Topics.Put(&topic.Config{Name: "Parent", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+message.type": "LITE"}}); err != nil {
			n.t.Fatal(err)
		}
		g := group.New("lg")
		g.Attributes = map[string]string{"+lite.bind.topic": "Parent"}
		if err := n.Groups.Put(g); err != nil {
			n.t.Fatal(err)
		}
	}, see: secondLite, from: false, to: true},
	"repeatedSendWindow": {value: "60000", see: sendIDs("a", "a"), from: int64(1), to: int64(0)},
	"repeatedSendsKept": {value: "1", prepare: func(n *node) {
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("repeatedSendWindow=60000"), nil)
		sendIDs("z")(n)
		time.Sleep(90 * time.Second) // the log is not looked into any more, and the connection is not idle for too long yet
	}, see: sendIDs("a", "b", "a"), from: int64(1), to: int64(5)},
	"enableLmq":           {value: "false", see: lightEnd, from: int64(1), to: int64(1)},
	"enableMultiDispatch": {value: "false", see: lightEnd, from: int64(1), to: int64(1)},
	"enableLmqQuota": {value: "true", prepare: func(n *node) {
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("maxLmqConsumeQueueNum=1"), nil)
	}, see: newLight, from: int32(0), to: int32(remoting.ResLMQQuotaExceeded)},
	"maxLmqConsumeQueueNum": {value: "1", prepare: func(n *node) {
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("enableLmqQuota=true"), nil)
	}, see: newLight, from: int32(0), to: int32(remoting.ResLMQQuotaExceeded)},
	"storeReplyMessageEnable": {value: "false", see: func(n *node) any {
		before := n.Store.LogEnd()
		n.call(remoting.ReqSendReplyMessageV2, replyHeader(n), []byte("x")) // to nobody
		return n.Store.LogEnd() > before
	}, from: true, to: false},
	"regionId":         {value: "moon", see: func(n *node) any { return n.send("T", 0, "x", "").Region }, from: "DefaultRegion", to: "moon"},
	"traceOn":          {value: "false", see: func(n *node) any { return n.send("T", 0, "x", "").TraceOn }, from: "true", to: "false"},
	"brokerPermission": {value: "4", see: sendCode("T", 1), from: int32(0), to: int32(remoting.ResNoPermission)},
	"startAcceptSendRequestTimeStamp": {value: "9000000000000", see: func(n *node) any {
		return n.call(remoting.ReqSendMessageV2, sendHeader("T", 0, ""), []byte("x")).Remark
	}, from: "", to: "broker unable to service, until " + time.UnixMilli(9000000000000).Format("2006-01-02 15:04:05,000")},
	"timerWheelEnable": {value: "false", see: sendTimer, from: int32(0), to: int32(remoting.ResSystemError)},
	"recallMessageEnable": {value: "false", see: func(n *node) any {
		return n.call(remoting.ReqRecallMessage, &remoting.RecallMessageRequest{Topic: "T", RecallHandle: "x"}, nil).Code
	}, from: int32(remoting.ResIllegalOperation), to: int32(remoting.ResNoPermission)},
	"timerMaxDelaySec": {value: "60", see: sendTimer, from: int32(0), to: int32(remoting.ResMessageIllegal)},
	"maxMessageSize":   {value: "65536", see: sendCode("T", 50_000), from: int32(remoting.ResMessageIllegal), to: int32(0)},

	"autoCreateTopicEnable": {value: "false", see: func(n *node) any {
		return n.call(remoting.ReqSendMessageV2, sendHeader(fmt.Sprint("new", len(n.Topics.All())), 0, ""), []byte("x")).Code
	}, from: int32(0), to: int32(remoting.ResTopicNotExist)},
	"defaultTopicQueueNums":              {value: "3", see: func(n *node) any { return n.config(names.AutoCreate).WriteQueues }, from: int32(8), to: int32(3)},
	"clusterTopicEnable":                 {value: "false", see: func(n *node) any { return n.config(n.Cluster).Perm }, from: int32(7), to: int32(1)},
	"brokerTopicEnable":                  {value: "false", see: func(n *node) any { return n.config(n.Name).Perm }, from: int32(7), to: int32(1)},
	"enableMixedMessageType":             {value: "true", see: putTopic("mixed", "+message.type=MIXED"), from: int32(remoting.ResInvalidParameter), to: int32(0)},
	"validateSystemTopicWhenUpdateTopic": {value: "false", see: putTopic(names.SelfTest, ""), from: int32(remoting.ResInvalidParameter), to: int32(0)},
	"clearRetryTopicWhenDeleteTopic": {value: "false", prepare: func(n *node) { n.makeGroup("g") }, see: func(n *node) any {
		retry := names.PopRetryV1("T", "g")
		n.topic("T", 1)
		n.topic(retry, 1)
		n.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: "T"}, nil, nil)
		_, there := n.Topics.Get(retry)
		return there
	}, from: false, to: true},

	"autoCreateSubscriptionGroup": {value: "false", see: newGroup("g"), from: nil, to: "refused"},
	"enableCreateSysGroup": {value: "false", prepare: func(n *node) {
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("autoCreateSubscriptionGroup=false"), nil)
	}, see: newGroup(names.SystemGroupPrefix), from: nil, to: "refused"},
	"rejectPullConsumerEnable": {value: "true", see: func(n *node) any {
		var d remoting.HeartbeatData
		_ = remoting.Unmarshal(heartbeat("c", "active", "T"), &d)
		d.ConsumerDataSet[0].ConsumeType = remoting.ConsumeActively
		c := n.connect(nil)
		defer func() { c.Close(); synctest.Wait() }()
		callOn(n.t, c, remoting.ReqHeartBeat, nil, remoting.Marshal(&d))
		return len(n.Clients.ConsumerIDs("active"))
	}, from: 1, to: 0},
	"notifyConsumerIdsChangedEnable": {value: "false", see: func(n *node) any {
		told := 0
		c := n.connect(func(r *transport.Request) { told++ })
		callOn(n.t, c, remoting.ReqHeartBeat, nil, heartbeat("first", "g", "T"))
		other := n.consumer("second", "g", "T")
		synctest.Wait()
		other.Close()
		c.Close()
		synctest.Wait()
		return told > 1
	}, from: true, to: false},
	"channelExpiredTimeout": {value: "20000", see: func(n *node) any {
		c := n.consumer("c", "g", "T")
		defer func() { c.Close(); synctest.Wait() }()
		time.Sleep(time.Minute)
		return len(n.Clients.ConsumerIDs("g"))
	}, from: 1, to: 0},
	"subscriptionExpiredTimeout": {value: "20000", see: func(n *node) any {
		n.Clients.Passing("g", clients.Subscription{Topic: "T", Expression: "*"}) // as a proxy's pull does
		time.Sleep(time.Minute)
		_, known := n.Clients.Subscription("g", "T")
		return known
	}, from: true, to: false},

	"litePullMessageEnable": {value: "false", prepare: func(n *node) { n.fill("T", 1) }, see: func(n *node) any {
		return n.call(remoting.ReqLitePullMessage, pullHeader("g", "T", 0, 0), nil).Code
	}, from: int32(0), to: int32(remoting.ResNoPermission)},
	"enablePropertyFilter": {value: "false", see: func(n *node) any {
		h := pullHeader("g", "T", 0, 0)
		h.Subscription, h.ExpressionType = "a > 1", "SQL92"
		return n.call(remoting.ReqPullMessage, h, nil).Code
	}, from: int32(remoting.ResPullNotFound), to: int32(remoting.ResSystemError)},
	"longPollingEnable": {value: "false", see: func(n *node) any {
		h := pullHeader("g", "T", 0, 0)
		h.SysFlag |= remoting.PullSuspend
		h.SuspendTimeoutMillis = 15_000
		began := time.Now()
		n.call(remoting.ReqPullMessage, h, nil)
		return time.Since(began).Round(time.Second)
	}, from: 15 * time.Second, to: time.Second},
	"maxTransferCountOnMessageInMemory": {value: "2", prepare: func(n *node) { n.fill("T", 5) }, see: func(n *node) any {
		return len(records(n.t, n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil, nil)))
	}, from: 5, to: 2},
	"defaultQueryMaxNum": {value: "2", prepare: func(n *node) {
		for range 4 {
			n.send("T", 0, "x", "UNIQ_KEY\x01same\x02")
		}
		until(n.t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 4 })
	}, see: func(n *node) any {
		h := uniqueKeyQuery{remoting.QueryMessageRequest{Topic: "T", Key: "same", MaxNum: 32, EndTimestamp: time.Now().Add(time.Hour).UnixMilli()}}
		return len(records(n.t, n.ok(remoting.ReqQueryMessage, &h, nil, nil)))
	}, from: 4, to: 2},

	"retrieveMessageFromPopRetryTopicV1": {value: "false", prepare: retries("T"), see: func(n *node) any { return n.popped("T", 2) }, from: "r-m0 m0", to: "m1 m2"},
	"popFromRetryProbability":            {value: "0", prepare: retries("T"), see: func(n *node) any { return n.popped("T", 5) }, from: "r-m0 m0 m1 m2 m3", to: "m4 m5 m6 m7 m8"},
	"popFromRetryProbabilityForPriority": {value: "100", prepare: retries("P"), see: func(n *node) any { return n.popped("P", 2) }, from: "m0 m1", to: "r-m0 r-m1"},
	"priorityOrderAsc": {value: "false", prepare: func(n *node) {
		n.priority("P", 2)
		for q := range int32(2) {
			for i := range 3 {
				n.send("P", q, fmt.Sprintf("q%d-%d", q, i), fmt.Sprintf("_SYS_MSG_PRIORITY_\x01%d\x02", q))
			}
		}
		until(n.t, "dispatch", func() bool { return n.Store.MaxOffset("P", 0)+n.Store.MaxOffset("P", 1) == 6 })
	}, see: func(n *node) any { return n.popped("P", 1) }, from: "q1-0", to: "q0-0"},
	"enableRetryTopicV2": {value: "true", prepare: func(n *node) { n.makeGroup("g") }, see: func(n *node) any {
		name := fmt.Sprint("T", len(n.Topics.All()))
		n.topic(name, 1)
		n.fill(name, 1)
		n.popped(name, 1)
		n.Clock.Advance(time.Minute)
		synctest.Wait()
		_, v2 := n.Topics.Get(names.PopRetryV2(name, "g"))
		return v2
	}, from: false, to: true},
	"enablePopMessageThreshold": {value: "true", prepare: func(n *node) {
		n.makeGroup("g")
		n.fill("T", 10)
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("popInflightMessageThreshold=1"), nil)
	}, see: func(n *node) any { return n.popped("T", 2) }, from: "m0 m1", to: ""},
	"popInflightMessageThreshold": {value: "2", prepare: func(n *node) {
		n.makeGroup("g")
		n.fill("T", 10)
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("enablePopMessageThreshold=true"), nil)
	}, see: func(n *node) any { return n.popped("T", 2) }, from: "m0 m1", to: ""},
	"rejectTransactionMessage": {value: "true", see: func(n *node) any {
		return n.call(remoting.ReqSendMessageV2, halfHeader("T", "p", ""), []byte("x")).Code
	}, from: int32(0), to: int32(remoting.ResNoPermission)},
	"transactionTimeOut": {value: "2000", see: func(n *node) any { u := n.half("T", "p", "x", ""); return u.Due - u.Stored }, from: int64(6000), to: int64(2000)},
	"transactionCheckInterval": {value: "10000", see: func(n *node) any {
		u := n.half("T", "p", "x", "")
		n.Clock.Advance(6 * time.Second)
		return n.undecided(u.QueueOffset).Due - u.Due
	}, from: int64(30_000), to: int64(10_000)},
	"transactionCheckMax": {value: "1", prepare: func(n *node) {
		n.Clients.Produces("p", clients.Client{ID: "p", Channel: new(brokertest.Producer)})
	}, see: func(n *node) any {
		n.half("T", "p", "x", "")
		n.Clock.Advance(37 * time.Second)
		return n.Store.MaxOffset(names.TransCheckMaxTime, 0) > 0
	}, from: false, to: true},
	"defaultMessageRequestMode": {value: "POP", see: func(n *node) any { return n.Admin.Mode("T", "g").Pop }, from: false, to: true},
	"defaultPopShareQueueNum": {value: "3", prepare: func(n *node) {
		n.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("defaultMessageRequestMode=POP"), nil)
	}, see: func(n *node) any { return n.Admin.Mode("T", "g").ShareQueues }, from: int32(-1), to: int32(3)},
}

// uniqueKeyQuery is a query as clients ask for a message by its unique key.
type uniqueKeyQuery struct{ remoting.QueryMessageRequest }

// Fields names the fields.
func (h *uniqueKeyQuery) Fields(v *remoting.Visitor) {
	yes := "true"
	h.QueryMessageRequest.Fields(v)
	v.Str("_UNIQUE_KEY_QUERY", &yes, remoting.Required)
}

func (n *node) config(name string) *topic.Config {
	n.t.Helper()
	c, ok := n.Topics.Get(name)
	if !ok {
		n.t.Fatalf("there is no topic %s", name)
	}
	return c
}

func (n *node) makeGroup(name string) {
	n.t.Helper()
	if _, err := n.Groups.GetOrCreate(name); err != nil {
		n.t.Fatal(err)
	}
}

// popped pops messages of a topic one by one and returns their bodies.
func (n *node) popped(topic string, times int) string {
	n.t.Helper()
	var bodies []string
	for range times {
		h := popHeader(topic)
		h.MaxMsgNums = 1
		list, _ := n.pop(h)
		for _, m := range list {
			bodies = append(bodies, string(m.Body))
		}
	}
	return strings.Join(bodies, " ")
}

// priority makes a topic whose messages have priorities.
func (n *node) priority(name string, queues int32) {
	n.t.Helper()
	err := n.Topics.Put(&topic.Config{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: 6, FilterType: topic.SingleTag,
		Attributes: map[string]string{"+message.type": "PRIORITY"}})
	if err != nil {
		n.t.Fatal(err)
	}
}

// retries fills a topic, and the retry topic that a group has for it.
func retries(name string) func(*node) {
	return func(n *node) {
		n.makeGroup("g")
		if name == "P" {
			n.priority("P", 1)
		}
		n.fill(name, 10)
		retry := names.PopRetryV1(name, "g")
		n.topic(retry, 1)
		for i := range 10 {
			n.send(retry, 0, fmt.Sprint("r-m", i), "")
		}
		until(n.t, "dispatch", func() bool { return n.Store.MaxOffset(retry, 0) == 10 })
	}
}

func sendCode(topic string, size int) func(*node) any {
	return func(n *node) any {
		return n.call(remoting.ReqSendMessageV2, sendHeader(topic, 0, ""), make([]byte, size)).Code
	}
}

func sendTimer(n *node) any {
	return n.call(remoting.ReqSendMessageV2, sendHeader("T", 0, "TIMER_DELAY_SEC\x013600\x02"), []byte("x")).Code
}

func putTopic(name, attributes string) func(*node) any {
	return func(n *node) any {
		return n.call(remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: name, DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1,
			Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: attributes}, nil).Code
	}
}

// newGroup makes another group of this beginning.
func newGroup(prefix string) func(*node) any {
	return func(n *node) any {
		if _, err := n.Groups.GetOrCreate(fmt.Sprint(prefix, len(n.Groups.All()))); err != nil {
			return "refused"
		}
		return nil
	}
}
