package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/server"
)

// scrape reads the metrics page: samples by name and the labels that were asked for.
func scrape(t *testing.T, addr string) map[string]int64 {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%s, %s", resp.Status, resp.Header)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	samples, typed := make(map[string]int64), make(map[string]bool)
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(name, " ")
			if typed[name] {
				t.Errorf("%s has two families", name)
			}
			typed[name] = true
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, "} ")
		n, err := strconv.ParseInt(value, 10, 64)
		name, _, _ := strings.Cut(key, "{")
		if err != nil || !typed[name] {
			t.Fatalf("%q is no sample of a known family", line)
		}
		key = strings.Replace(key, `cluster="DefaultCluster",node_type="broker",node_id="broker-a"`, "", 1)
		key = strings.Replace(key, "{,", "{", 1)
		if _, twice := samples[key]; twice {
			t.Errorf("%s twice", key)
		}
		samples[key] = n
	}
	return samples
}

// R125: two groups read one topic, one of them stands still in one queue: the metrics show
// which, and their sums are those of the administration request, to the message.
func TestMetrics(t *testing.T) {
	s := start(t, func(o *server.Options) { o.MetricsAddr = "127.0.0.1:0" })
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "orders") // of two queues
	const sent = 10
	for i := range 2 * sent {
		a := c.call(s.Broker(), remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: "orders",
			DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 4, QueueID: int32(i % 2), BornTimestamp: time.Now().UnixMilli()}, []byte("x"))
		if a.Code != remoting.ResSuccess {
			t.Fatal(a.Remark)
		}
	}
	done := map[string][2]int64{"prompt": {sent, sent}, "stuck": {sent, 3}}
	for group, offsets := range done {
		for queue, off := range offsets {
			c.heartbeat(s.Broker(), group, "orders")
			a := c.call(s.Broker(), remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: group, Topic: "orders",
				QueueID: int32(queue), CommitOffset: off}, nil)
			if a.Code != remoting.ResSuccess {
				t.Fatal(a.Remark)
			}
		}
	}
	// A group of POP has three in flight and one done.
	a := c.call(s.Broker(), remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: "popping", Topic: "orders", QueueID: 0, MaxMsgNums: 3,
		InvisibleTime: 60_000, PollTime: 10_000, BornTime: time.Now().UnixMilli()}, nil)
	if a.Code != remoting.ResSuccess {
		t.Fatal(a.Remark)
	}
	deadline := time.Now().Add(patience)
	var got map[string]int64
	for got = scrape(t, s.Metrics()); got[`rocketmq_messages_in_total{topic="orders",is_system="false"`] < 2*sent; got = scrape(t, s.Metrics()) {
		if time.Now().After(deadline) {
			t.Fatalf("%v", got)
		}
	}
	for group, offsets := range done {
		var stats remoting.ConsumeStats
		a := c.call(s.Broker(), remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsRequest{ConsumerGroup: group}, nil)
		if err := remoting.Unmarshal(a.Body, &stats); err != nil {
			t.Fatal(err)
		}
		asked, want := int64(0), 2*sent-offsets[0]-offsets[1]
		for _, q := range stats.OffsetTable {
			asked += q.BrokerOffset - q.ConsumerOffset
		}
		of := fmt.Sprintf(`{consumer_group=%q,topic="orders",is_retry="false",is_system="false"`, group)
		if lag := got["rocketmq_consumer_lag_messages"+of]; lag != want || lag != asked {
			t.Errorf("%s: lag %d, the administration request says %d, it is %d", group, lag, asked, want)
		}
		if latency, there := got["rocketmq_consumer_lag_latency"+of]; !there || want == 0 && latency != 0 {
			t.Errorf("%s: the oldest message is %d ms old", group, latency)
		}
		for queue, off := range offsets {
			key := fmt.Sprintf(`bolide_queue_lag_messages{consumer_group=%q,topic="orders",queue_id="%d"`, group, queue)
			if lag, there := got[key]; lag != sent-off || there != (lag > 0) {
				t.Errorf("%s: %d", key, lag)
			}
		}
		if n := got[fmt.Sprintf(`rocketmq_consumer_connections{consumer_group=%q,language="go",version="513",consume_mode="push",is_system="false"`, group)]; n != 1 {
			t.Errorf("%s: %d connections", group, n)
		}
	}
	popping := `{consumer_group="popping",topic="orders",is_retry="false",is_system="false"`
	if n, ready := got["rocketmq_consumer_inflight_messages"+popping], got["rocketmq_consumer_ready_messages"+popping]; n != 3 || ready < sent-3 {
		t.Errorf("in flight %d, ready %d", n, ready)
	}
	if n := got[`rocketmq_messages_out_total{topic="orders",consumer_group="popping",is_retry="false",is_system="false"`]; n != 3 {
		t.Errorf("%d messages out", n)
	}
}

// heartbeat makes this caller a member of a group that pushes.
func (c *caller) heartbeat(addr, group, topic string) {
	c.t.Helper()
	body := fmt.Sprintf(`{"clientID":"c","consumerDataSet":[{"groupName":%q,"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",`+
		`"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","subscriptionDataSet":[{"topic":%q,"subString":"*","subVersion":1}]}],"producerDataSet":[]}`, group, topic)
	if a := c.call(addr, remoting.ReqHeartBeat, nil, []byte(body)); a.Code != remoting.ResSuccess {
		c.t.Fatal(a.Remark)
	}
}
