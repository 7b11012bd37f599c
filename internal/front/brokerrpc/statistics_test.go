package brokerrpc

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func (n *node) body(code int32, h remoting.Header, b remoting.Body) {
	n.t.Helper()
	text := n.ok(code, h, nil, nil)
	if err := remoting.Unmarshal(text, b); err != nil {
		n.t.Fatalf("%s: %v\n%s", remoting.CodeName(code), err, text)
	}
}

func (n *node) commit(group, topic string, offset int64) {
	n.t.Helper()
	n.ok(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, CommitOffset: offset}, nil, nil)
}

func TestStatisticsByName(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 4)
	n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 1), nil, nil)
	sum := func(name, key string) int64 {
		t.Helper()
		var d remoting.BrokerStatsData
		n.body(remoting.ReqViewBrokerStatsData, &remoting.ViewBrokerStatsDataRequest{StatsName: name, StatsKey: key}, &d)
		if d.StatsMinute.Sum != d.StatsHour.Sum || d.StatsHour.Sum != d.StatsDay.Sum {
			t.Errorf("%s of %s: %+v", name, key, d)
		}
		return d.StatsMinute.Sum
	}
	until(t, "the counts", func() bool { return sum("TOPIC_PUT_NUMS", "T") == 4 })
	if got := sum("GROUP_GET_NUMS", "T@g"); got != 3 {
		t.Errorf("messages got: %d", got)
	}
	if sum("TOPIC_PUT_SIZE", "T") < 400 || sum("GROUP_GET_SIZE", "T@g") < 300 || sum("BROKER_PUT_NUMS", n.Cluster) < 4 || sum("BROKER_GET_NUMS", n.Cluster) != 3 {
		t.Error("sizes or the broker's counts are not there")
	}
	for _, key := range []string{"no", "T@no", ""} {
		r := n.call(remoting.ReqViewBrokerStatsData, &remoting.ViewBrokerStatsDataRequest{StatsName: "GROUP_GET_NUMS", StatsKey: key}, nil)
		if r.Code != 1 || !strings.Contains(r.Remark, "not exist") {
			t.Errorf("unknown key %q: %d %s", key, r.Code, r.Remark)
		}
	}
	if n.stats("g"); len(n.stats("g")) != 0 {
		t.Error("a group without offsets has progress")
	}
}

func TestConsumeStatsOfTheBroker(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	n.fill("T", 5)
	n.commit("g", "T", 2)
	var list remoting.ConsumeStatsList
	n.body(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsRequest{}, &list)
	found := 0
	for _, of := range list.ConsumeStatsList {
		for _, s := range of["g"] {
			found++
			if w := s.OffsetTable[remoting.MessageQueue{Topic: "T", BrokerName: n.Name}]; w.BrokerOffset != 5 || w.ConsumerOffset != 2 || w.LastTimestamp == 0 {
				t.Errorf("%+v", w)
			}
		}
	}
	if found != 1 || list.TotalDiff != 3 || list.BrokerAddr != n.StoreHost.String() || len(list.ConsumeStatsList) != len(n.Groups.All()) {
		t.Errorf("%d entries of %d, %+v", found, len(list.ConsumeStatsList), list.TotalDiff)
	}
	n.body(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsRequest{IsOrder: true}, &list)
	if list.TotalDiff != 0 {
		t.Errorf("an ordinary topic among the ordered ones: %d", list.TotalDiff)
	}
	var spans remoting.QueryConsumeTimeSpanBody
	n.body(remoting.ReqQueryConsumeTimeSpan, &remoting.QueryConsumeTimeSpanRequest{Topic: "T", Group: "g"}, &spans)
	if len(spans.ConsumeTimeSpanSet) != 2 {
		t.Fatalf("%+v", spans)
	}
	full, empty := spans.ConsumeTimeSpanSet[0], spans.ConsumeTimeSpanSet[1]
	if full.MinTimestamp <= 0 || full.MaxTimestamp < full.MinTimestamp || full.ConsumeTimestamp < full.MinTimestamp || full.DelayTime < 0 ||
		empty.MinTimestamp != -1 || empty.MaxTimestamp != -1 || empty.DelayTime != 0 {
		t.Errorf("%+v, %+v", full, empty)
	}
	if r := n.call(remoting.ReqQueryConsumeTimeSpan, &remoting.QueryConsumeTimeSpanRequest{Topic: "no", Group: "g"}, nil); r.Code != remoting.ResTopicNotExist {
		t.Errorf("unknown topic: %d", r.Code)
	}
}

// What a POP group has in flight is shown to the message, also where acknowledgements came
// out of order; so is what a group pulls that went over from POP.
func TestInFlightOfPop(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 20)
	if _, err := n.Groups.GetOrCreate("g"); err != nil {
		t.Fatal(err)
	}
	h := popHeader("T")
	h.MaxMsgNums = 10
	list, _ := n.pop(h)
	if len(list) != 10 {
		t.Fatalf("popped %d", len(list))
	}
	check := func(consumed, inFlight int64) {
		t.Helper()
		at := remoting.MessageQueue{Topic: "T", BrokerName: n.Name}
		until(t, "the offset", func() bool { return n.stats("g")[at].ConsumerOffset == consumed })
		if w := n.stats("g")[at]; w.PullOffset-w.ConsumerOffset != inFlight || w.BrokerOffset != 20 {
			t.Errorf("%+v, %d are in flight", w, inFlight)
		}
		var all remoting.ConsumeStatsList
		n.body(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsRequest{}, &all)
		if all.TotalInflightDiff != inFlight || all.TotalDiff != 20-consumed {
			t.Errorf("of the broker: %d behind, %d in flight", all.TotalDiff, all.TotalInflightDiff)
		}
	}
	check(0, 10)
	for _, i := range []int{9, 4, 5} {
		n.ack(list[i])
	}
	check(0, 7)
	n.ack(list[0])
	check(1, 6)
	n.ok(remoting.ReqPullMessage, pullHeader("g", "T", 0, 16), nil, nil)
	check(1, 16) // as far as that pull went
}

// A group that was told to pop a topic, then to pull it, and never did either has come
// nowhere in it.
func TestConsumeStatsOfAGroupThatNeverCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		defer n.stop()
		n.topic("T", 2)
		n.fill("T", 5)
		n.makeGroup("g")
		n.setMode("g", "T", remoting.ModePop)
		n.setMode("g", "T", remoting.ModePull)
		synctest.Wait() // what POP has is given up
		var all remoting.ConsumeStatsList
		n.body(remoting.ReqGetBrokerConsumeStats, &remoting.GetBrokerConsumeStatsRequest{}, &all)
		if all.TotalDiff != 0 || len(n.stats("g")) != 0 {
			t.Errorf("%d messages behind, in %v", all.TotalDiff, n.stats("g"))
		}
	})
}

// The statistics of all groups are made in one pass: ten times the groups take about ten
// times as long, not a hundred times.
func TestConsumeStatsOfManyGroups(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.fill("T", 1)
	made := 0
	took := func(groups int, most time.Duration) time.Duration {
		for ; made < groups; made++ {
			name := fmt.Sprint("g", made)
			if _, err := n.Groups.GetOrCreate(name); err != nil {
				t.Fatal(err)
			}
			n.Offsets.Advance(name, "T", 0, 1)
		}
		best := time.Hour
		for range 10 { // the shortest counts: the machine has other things to do
			began := time.Now()
			if got := len(n.Admin.BrokerConsumeStats(false)); got < groups {
				t.Fatalf("%d of %d groups", got, groups)
			}
			best = min(best, time.Since(began))
			if best < most {
				break
			}
		}
		return best
	}
	few := took(1000, 0)
	many := took(10_000, max(50*few, 200*time.Millisecond))
	t.Logf("1,000 groups %v, 10,000 groups %v", few, many)
	if many > 50*few && many > 200*time.Millisecond {
		t.Errorf("1,000 groups take %v, ten times as many %v", few, many)
	}
}

// Topics that a question lists are shown whether the group subscribes to them or not; one
// that it names alone only if it does.
func TestConsumeStatsOfListedTopics(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.topic("U", 2)
	n.consumer("c", "g", "T")
	for _, c := range []struct {
		topic, list string
		queues      int
	}{{"", "T;U", 3}, {"", "U", 2}, {"T", "U", 2}, {"U", "", 0}, {"T", "", 1}} {
		var s remoting.ConsumeStats
		n.body(remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsRequest{ConsumerGroup: "g", Topic: c.topic, TopicList: c.list}, &s)
		if len(s.OffsetTable) != c.queues {
			t.Errorf("topic %q, list %q: %d queues, not %d", c.topic, c.list, len(s.OffsetTable), c.queues)
		}
	}
}

func TestClonedAndCorrectedOffsets(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	n.topic("U", 1)
	for _, topic := range []string{"T", "U"} {
		n.fill(topic, 5)
		n.commit("from", topic, 2)
	}
	n.commit("to", "T", 5)
	if r := n.call(remoting.ReqCloneGroupOffset, &remoting.CloneGroupOffsetRequest{SrcGroup: "from", DestGroup: "nobody"}, nil); r.Code != remoting.ResSubscriptionGroupNotExist {
		t.Errorf("to an unknown group: %d %s", r.Code, r.Remark)
	}
	n.ok(remoting.ReqCloneGroupOffset, &remoting.CloneGroupOffsetRequest{SrcGroup: "from", DestGroup: "to"}, nil, nil)
	for _, topic := range []string{"T", "U"} {
		if off, _ := n.Offsets.Query("to", topic, 0); off != 2 {
			t.Errorf("%s: %d", topic, off)
		}
	}
	// A consumer that is still at the old place does not write over it.
	n.call(remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: "to", Topic: "T", CommitOffset: 5}, nil)
	if off, _ := n.Offsets.Query("to", "T", 0); off != 2 {
		t.Errorf("written over: %d", off)
	}

	n.commit("low", "T", 1)
	n.commit("lowest", "T", 0)
	ask := func(without, compared string) int64 {
		var b remoting.QueryCorrectionOffsetBody
		n.body(remoting.ReqQueryCorrectionOffset, &remoting.QueryCorrectionOffsetRequest{Topic: "T", FilterGroups: without, CompareGroup: compared}, &b)
		return b.CorrectionOffsets[0]
	}
	if got := ask("", "from"); got != 0 {
		t.Errorf("lowest of all: %d", got)
	}
	if got := ask("lowest", "from"); got != 1 {
		t.Errorf("without one: %d", got)
	}
	if got := ask("lowest", "lowest"); got != math.MaxInt64 {
		t.Errorf("behind all: %d", got)
	}
}

// TestForbiddenGroup is 353: a group that is forbidden a topic gets nothing of it, by pull
// and by pop, until that is taken back; it outlives a restart.
func TestForbiddenGroup(t *testing.T) {
	fs := vfs.NewMem()
	n := startNode(t, fs)
	n.topic("T", 1)
	n.fill("T", 1)
	n.commit("g", "T", 0)
	set := func(n *node, readable remoting.Opt[bool], want bool) {
		t.Helper()
		var a remoting.GroupForbidden
		n.body(remoting.ReqUpdateAndGetGroupForbidden, &remoting.UpdateAndGetGroupForbiddenRequest{Group: "g", Topic: "T", Readable: readable}, &a)
		if a.Readable != want || a.Group != "g" || a.Topic != "T" {
			t.Errorf("%+v", a)
		}
	}
	set(n, remoting.Opt[bool]{}, true)
	set(n, remoting.Some(false), false)
	n.stop()
	n = startNode(t, fs)
	set(n, remoting.Opt[bool]{}, false)
	r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil)
	var h remoting.PullMessageResponse
	if err := r.Decode(&h); err != nil || r.Code != remoting.ResNoPermission || h.ForbiddenType.Value != 5 || !strings.Contains(r.Remark, "g, topic T") {
		t.Errorf("pull: %d %s %+v %v", r.Code, r.Remark, h, err)
	}
	pop := &remoting.PopMessageRequest{ConsumerGroup: "g", Topic: "T", QueueID: -1, MaxMsgNums: 1, InvisibleTime: 60000}
	if r := n.call(remoting.ReqPopMessage, pop, nil); r.Code != remoting.ResNoPermission {
		t.Errorf("pop: %d %s", r.Code, r.Remark)
	}
	if r := n.call(remoting.ReqPullMessage, pullHeader("other", "T", 0, 0), nil); r.Code != 0 {
		t.Errorf("another group: %d %s", r.Code, r.Remark)
	}
	set(n, remoting.Some(true), true)
	if r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil); r.Code != 0 {
		t.Errorf("allowed again: %d %s", r.Code, r.Remark)
	}
}

func TestConsumeQueueAndCleaning(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	for _, tag := range []string{"a", "b", ""} {
		n.send("T", 0, "x", "TAGS\x01"+tag+"\x02")
	}
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 3 })
	ask := func(from int64, count int32) (b remoting.QueryConsumeQueueBody) {
		n.body(remoting.ReqQueryConsumeQueue, &remoting.QueryConsumeQueueRequest{Topic: "T", QueueID: remoting.Some[int32](0), Index: from, Count: count, ConsumerGroup: "g"}, &b)
		return b
	}
	if b := ask(1, 10); b.MaxQueueIndex != 3 || b.MinQueueIndex != 0 || len(b.QueueData) != 2 || b.QueueData[0].TagsCode != 'b' || b.QueueData[0].PhysicSize < 90 || b.QueueData[0].PhysicOffset == 0 {
		t.Errorf("%+v", b)
	}
	if b := ask(0, 1); len(b.QueueData) != 1 || b.FilterData != "g@T is not online!" {
		t.Errorf("%+v", b)
	}
	for _, from := range []int64{3, -1, math.MaxInt64, math.MinInt64} {
		if b := ask(from, math.MaxInt32); len(b.QueueData) != 0 {
			t.Errorf("from %d: %+v", from, b)
		}
	}
	if r := n.call(remoting.ReqQueryConsumeQueue, &remoting.QueryConsumeQueueRequest{Topic: "no", QueueID: remoting.Some[int32](0)}, nil); r.Code != 1 {
		t.Errorf("unknown queue: %d %s", r.Code, r.Remark)
	}
	for _, code := range []int32{remoting.ReqCleanExpiredConsumeQueue, remoting.ReqDeleteExpiredCommitLog, remoting.ReqCleanUnusedTopic} {
		n.ok(code, nil, nil, nil)
	}
	if r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil); r.Code != 0 || len(records(t, r.Body)) != 3 {
		t.Errorf("cleaning took messages: %d %s", r.Code, r.Remark)
	}
}

func TestAllProducers(t *testing.T) {
	n := newNode(t)
	n.consumer("c1", "g", "T")
	var table remoting.ProducerTable
	n.body(remoting.ReqGetAllProducerInfo, nil, &table)
	if list := table.Data["producers"]; len(list) != 1 || list[0].ClientID != "c1" || list[0].LastUpdateTimestamp == 0 || list[0].RemoteIP == "" {
		t.Errorf("%+v", table)
	}
}
