package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// figures are what a metrics page says of one group and topic.
type figures struct{ lag, inFlight, ready int64 }

func (f figures) String() string {
	return fmt.Sprintf("lag %d, in flight %d, ready %d", f.lag, f.inFlight, f.ready)
}

// metricsSuite sends the same messages through the same life on both servers, and holds that
// their metrics say the same after each step; where Apache means something else, what each
// says.
func metricsSuite(ctx context.Context, h *harness) error {
	if h.target.Metrics == "" {
		return fmt.Errorf("the server has no metrics page")
	}
	w, err := dial(ctx, h)
	if err != nil {
		return err
	}
	defer w.close()
	for _, c := range []struct {
		name string
		run  func(*wire) error
	}{
		{"a group that pops", (*wire).metricsOfPop},
		{"a group that pulls", (*wire).metricsOfPull},
		{"dead letters", (*wire).metricsOfDeadLetters},
	} {
		var failed error
		if err := attempt(func() { failed = c.run(w) }); err != nil {
			failed = err
		}
		h.report("metrics: "+c.name, failed)
	}
	return nil
}

// metricsOfPop follows ten messages from before they are popped to their end.
func (w *wire) metricsOfPop() error {
	q := w.popTopic("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	w.joins(q, "CONSUME_POP")
	if err := w.figures("joined", q, false, figures{10, 0, 10}, unlike{"metrics, groups that have not begun in a topic", figures{}}); err != nil {
		return err
	}
	h := w.popHeader(q, 12_000)
	h.MaxMsgNums = 4
	got := w.popAs(h)
	if err := w.figures("four popped", q, false, figures{10, 4, 6}); err != nil {
		return err
	}
	w.ackOne(q, got[1]) // not the first
	w.ackOne(q, got[3])
	if err := w.figures("two acknowledged", q, false, figures{8, 2, 6}); err != nil {
		return err
	}
	if err := w.figures("no retries yet", q, true, figures{0, 0, 0}); err != nil {
		return err
	}
	w.until("the other two to lapse", func() bool { return w.sample("rocketmq_pop_revive_retry_messages_total", q, "") == 2 })
	if err := w.figures("two lapsed", q, false, figures{6, 0, 6}); err != nil {
		return err
	}
	if err := w.figures("two to come again", q, true, figures{2, 0, 2}); err != nil {
		return err
	}
	var again []receipt.Handle
	w.until("the two again", func() bool {
		h.BornTime = time.Now().UnixMilli()
		a := w.call(w.broker(), remoting.ReqPopMessage, h, nil)
		if a.Code == remoting.ResPollingTimeout {
			return false // Apache looks for retries now and then
		}
		for _, r := range w.receipts(w.ok(a)) {
			if again = append(again, r); r.RetryFlag == receipt.FlagNormal {
				w.ackOne(q, r)
			}
		}
		return len(again) == 8
	})
	if err := w.figures("popped again", q, true, figures{2, 2, 0}); err != nil {
		return err
	}
	for _, r := range again {
		if r.RetryFlag != receipt.FlagNormal {
			w.ackOne(q, r)
		}
	}
	// Apache forgets how far the group is in the retry topic, and counts from its stored
	// offset, which stays where it was.
	if err := w.figures("all done", q, true, figures{}, unlike{"metrics, retries of POP that are all done", figures{2, 0, 2}}); err != nil {
		return err
	}
	if out, again := w.sample("rocketmq_messages_out_total", q, "false"), w.sample("rocketmq_messages_out_total", q, "true"); out != 10 || again != 2 {
		return fmt.Errorf("%d messages out, %d of them again, want 10 and 2", out, again)
	}
	if in := w.sampleOf("rocketmq_messages_in_total", `topic="`+q.topic+`"`); in != 10 {
		return fmt.Errorf("%d messages in, want 10", in)
	}
	return w.figures("all done", q, false, figures{})
}

// metricsOfPull follows a group that commits offsets.
func (w *wire) metricsOfPull() error {
	q := w.popTopic("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	w.joins(q, "CONSUME_PASSIVELY")
	commit := func(offset int64) {
		w.ok(w.call(w.broker(), remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: q.group, Topic: q.topic, CommitOffset: offset}, nil))
	}
	commit(0)
	w.ok(w.call(w.broker(), remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: q.group, Topic: q.topic, MaxMsgNums: 4,
		SysFlag: 4, Subscription: "*", ExpressionType: "TAG", SubVersion: time.Now().UnixMilli()}, nil))
	if err := w.figures("four pulled", q, false, figures{10, 4, 6}); err != nil {
		return err
	}
	commit(3)
	return w.figures("three committed", q, false, figures{7, 1, 6})
}

// metricsOfDeadLetters gives one message back for good.
func (w *wire) metricsOfDeadLetters() error {
	q := w.popTopic("0")
	w.joins(q, "CONSUME_PASSIVELY")
	if n := w.sample("rocketmq_send_to_dlq_messages_total", q, ""); n > 0 {
		return fmt.Errorf("%d dead letters before the first", n)
	}
	placed := w.ok(w.send(q.topic, "1", ""))
	var at remoting.SendMessageResponse
	w.must(placed.Decode(&at))
	_, offset, err := message.ParseOffsetID(at.MsgID)
	w.must(err)
	w.ok(w.call(w.broker(), remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackRequest{Group: q.group, Offset: offset, DelayLevel: -1,
		OriginMsgID: at.MsgID, OriginTopic: q.topic, MaxReconsumeTimes: remoting.Some(int32(16))}, nil))
	if n := w.sample("rocketmq_send_to_dlq_messages_total", q, ""); n != 1 {
		return fmt.Errorf("%d dead letters, want 1", n)
	}
	return nil
}

// joins makes this connection a member of the group.
func (w *wire) joins(q popped, kind string) {
	w.ok(w.call(w.broker(), remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: w.fresh("client"), ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: q.group, ConsumeType: kind, MessageModel: "CLUSTERING", ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET",
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: q.topic, SubString: "*", SubVersion: time.Now().UnixMilli(), ExpressionType: "TAG"}},
	}}})))
}

func (w *wire) ackOne(q popped, h receipt.Handle) {
	w.ok(w.call(w.broker(), remoting.ReqAckMessage, &remoting.AckMessageRequest{ConsumerGroup: q.group, Topic: h.RealTopic(q.topic, q.group), QueueID: h.QueueID,
		ExtraInfo: h.String(), Offset: h.Offset}, nil))
}

// unlike is what Apache says otherwise, and where docs/differences.md has it.
type unlike struct {
	row string
	figures
}

// figures holds what the page says of a group and topic. Apache's figures come a moment
// later than its answers, so it waits for them.
func (w *wire) figures(when string, q popped, retry bool, want figures, apache ...unlike) error {
	if w.harness.apache && len(apache) > 0 {
		want = apache[0].figures
	}
	var got figures
	again := strconv.FormatBool(retry)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got = figures{w.sample("rocketmq_consumer_lag_messages", q, again), w.sample("rocketmq_consumer_inflight_messages", q, again),
			w.sample("rocketmq_consumer_ready_messages", q, again)}
		if got == want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s, retry %v: %s, want %s", when, retry, got, want)
		}
	}
}

// sample is one figure of the page for a group and topic, −1 if it is not there.
func (w *wire) sample(family string, q popped, retry string) int64 {
	labels := []string{`topic="` + q.topic + `"`, `consumer_group="` + q.group + `"`}
	if retry != "" {
		labels = append(labels, `is_retry="`+retry+`"`)
	}
	return w.sampleOf(family, labels...)
}

// sampleLine is a line of Prometheus' text form; Apache adds the time.
var sampleLine = regexp.MustCompile(`^(\w+)\{(.*)\} (\S+)`)

func (w *wire) sampleOf(family string, labels ...string) int64 {
	answer, err := http.Get("http://" + w.harness.target.Metrics + "/metrics")
	w.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.must(err)
lines:
	for line := range strings.Lines(string(text)) {
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != family {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(","+m[2]+",", ","+l+",") {
				continue lines
			}
		}
		value, err := strconv.ParseFloat(m[3], 64)
		w.must(err)
		return int64(value)
	}
	return -1
}
