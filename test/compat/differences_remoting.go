package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

var remotingDifferences = []difference{
	{
		row:    "a required header field is missing or ill-typed",
		apache: `1 .*(Exception|null).*`,
		bolide: `29 PULL_MESSAGE.*topic.*`,
		ask: func(w *wire) string {
			return w.says(w.call(w.broker(), remoting.ReqPullMessage, fields{"consumerGroup": "g", "queueId": "0", "queueOffset": "0",
				"maxMsgNums": "1", "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0"}, nil))
		},
	}, {
		row:    "more than 1,024 fields in a header",
		apache: `answered`,
		bolide: `closed`,
		ask: func(w *wire) string {
			raw := w.connect(w.broker())
			defer raw.Close()
			var ext strings.Builder
			for i := range 1500 {
				fmt.Fprintf(&ext, `%q:"x",`, fmt.Sprint("field", i))
			}
			header := fmt.Sprintf(`{"code":105,"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":479,"extFields":{%s"topic":"T"}}`, ext.String())
			frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
			frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
			_, err := raw.Write(append(frame, header...))
			w.must(err)
			if _, err := raw.Read(make([]byte, 4)); err != nil {
				return "closed"
			}
			return "answered"
		},
	}, {
		row: "send with an empty body", apache: `1 .*`, bolide: `13 .*empty.*`,
		ask: func(w *wire) string { return w.says(w.send(w.topic(1), "", "")) },
	}, {
		row: "property value with a separator, pair without a name", apache: `0  then 0 `, bolide: `13 .*"a".* then 13 .*no name.*`,
		ask: func(w *wire) string {
			topic := w.topic(1)
			return w.says(w.send(topic, "x", "a\x01b\x01c\x02")) + " then " + w.says(w.send(topic, "x", "\x01b\x02"))
		},
	}, {
		row: "`DELAY` that is no number", apache: `1 .*Exception.*`, bolide: `13 .*soon.*`,
		ask: func(w *wire) string { return w.says(w.send(w.topic(1), "x", "DELAY\x01soon\x02")) },
	}, {
		row: "`_SYS_MSG_PRIORITY_` that is negative, or no number", apache: `0  then 0 `, bolide: `13 .*"-1".* then 13 .*"high".*2147483647.*`,
		ask: func(w *wire) string {
			topic := w.topicWith(2, 6, "PRIORITY")
			return w.says(w.send(topic, "x", "_SYS_MSG_PRIORITY_\x01-1\x02")) + " then " + w.says(w.send(topic, "x", "_SYS_MSG_PRIORITY_\x01high\x02"))
		},
	}, {
		row: "send to a topic without write permission", apache: `0 `, bolide: `16 .*`,
		ask: func(w *wire) string { return w.says(w.send(w.topicWith(1, 4, ""), "x", "")) },
	}, {
		row: "where a new classic group begins", apache: `0 at 0`, bolide: `22 at 0`,
		ask: func(w *wire) string {
			topic, filled := w.filled("a", "b"), time.Now().UnixMilli()
			// A queue that is not older than its group would be read from its beginning.
			w.until("the next millisecond", func() bool { return time.Now().UnixMilli() > filled+1 })
			a := w.call(w.broker(), remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: w.fresh("group"), Topic: topic}, nil)
			var at remoting.QueryConsumerOffsetResponse
			_ = a.Decode(&at)
			return fmt.Sprintf("%d at %d", a.Code, at.Offset)
		},
	}, {
		row: "refused code", apache: `3  request type 209 not supported`, bolide: `3  request type 209 not supported.+`,
		ask: func(w *wire) string { return w.says(w.call(w.broker(), remoting.ReqSuspendConsumer, fields{}, nil)) },
	}, {
		row: "pull by an SQL92 expression that can't be read", apache: `0 .*`, bolide: `23 .*at position 3.*`,
		ask: func(w *wire) string { return w.says(w.pullBy(w.filled("a"), "SQL92", "a ! 5")) },
	}, {
		row: "text behind the end of an SQL92 expression", apache: `20 .*`, bolide: `23 .*nothing may follow.*`,
		ask: func(w *wire) string { return w.says(w.pullBy(w.filled("a"), "SQL92", "a = 5 b")) },
	}, {
		row: "tags of one hash", apache: `0 .*`, bolide: `20 .*`,
		ask: func(w *wire) string {
			topic := w.topic(1)
			w.ok(w.send(topic, "x", "TAGS\x01BB\x02"))
			w.until("dispatch", func() bool { return w.end(topic, 0) == 1 })
			return w.says(w.pullBy(topic, "TAG", "Aa"))
		},
	}, {
		row: "query by key, where other messages have keys of the same hash", apache: `0 .*`, bolide: `22 .*`,
		ask: func(w *wire) string {
			topic := w.topic(1)
			w.ok(w.send(topic, "x", "KEYS\x01BB\x02"))
			query := func(key string) *remoting.Command {
				return w.call(w.broker(), remoting.ReqQueryMessage, &remoting.QueryMessageRequest{Topic: topic, Key: key, MaxNum: 32,
					EndTimestamp: time.Now().Add(time.Hour).UnixMilli()}, nil)
			}
			w.until("the index", func() bool { return query("BB").Code == remoting.ResSuccess })
			return w.says(query("Aa"))
		},
	}, {
		row: "filter expression of more than 64 KiB", apache: `20 .*`, bolide: `23 .*`,
		ask: func(w *wire) string {
			return w.says(w.pullBy(w.filled("a"), "TAG", strings.Repeat("tag || ", 10_000)+"*"))
		},
	}, {
		row: "batch of more than 65,536 messages", apache: `0 `, bolide: `13 .*65536.*`,
		ask: func(w *wire) string {
			one, err := message.AppendBatch(nil, &message.Message{Body: []byte("x")})
			w.must(err)
			h := w.sendHeader(w.topic(1), "")
			h.Batch = true
			return w.says(w.call(w.broker(), remoting.ReqSendBatchMessage, h, bytes.Repeat(one, 65_537)))
		},
	}, {
		row: "heartbeat without subscriptions that the broker has never seen", apache: `false`, bolide: `true`,
		ask: func(w *wire) string {
			a := w.ok(w.call(w.broker(), remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{ClientID: w.fresh("client"),
				ConsumerDataSet: []remoting.ConsumerData{{GroupName: w.group(), ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering,
					ConsumeFromWhere: remoting.ConsumeFromLastOffset}}, HeartbeatFingerprint: 7, WithoutSub: true})))
			return fmt.Sprint(a.Ext.Is("IS_SUB_CHANGE", "true"))
		},
	}, {
		row: "pull with `slaveReadEnable`: which broker to ask next", apache: `2`, bolide: `0`,
		ask: func(w *wire) string {
			set := func(on string) { // Bolide has no such setting
				w.call(w.broker(), remoting.ReqUpdateBrokerConfig, nil, []byte("slaveReadEnable="+on))
			}
			set("true")
			defer set("false")
			topic, group := w.filled("a"), w.fresh("group")
			w.ok(w.call(w.broker(), remoting.ReqUpdateAndCreateSubscriptionGroup, nil, fmt.Appendf(nil,
				`{"groupName":%q,"consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16,"brokerId":2,"whichBrokerWhenConsumeSlowly":3}`, group)))
			var h remoting.PullMessageResponse
			w.must(w.ok(w.call(w.broker(), remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: group, Topic: topic, MaxMsgNums: 1,
				SysFlag: remoting.PullSubscription, Subscription: "*", ExpressionType: "TAG"}, nil)).Decode(&h))
			return fmt.Sprint(h.SuggestWhichBrokerID)
		},
	},
}

// pullBy pulls the beginning of a topic by an expression.
func (w *wire) pullBy(topic, kind, text string) *remoting.Command {
	return w.call(w.broker(), remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: w.group(), Topic: topic, MaxMsgNums: 1,
		SysFlag: remoting.PullSubscription, Subscription: text, ExpressionType: kind, SubVersion: time.Now().UnixMilli()}, nil)
}

// fields is a header given field by field, so that some can be missing.
type fields map[string]string

// Fields writes them.
func (f fields) Fields(v *remoting.Visitor) {
	for name, value := range f {
		v.Str(name, &value, remoting.Required)
	}
}

func (w *wire) broker() string  { return w.harness.target.Broker }
func (w *wire) namesrv() string { return w.harness.target.Namesrv }

func (w *wire) call(addr string, code int32, h remoting.Header, body []byte) *remoting.Command {
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	a, err := w.calls.Call(ctx, addr, code, h, body)
	w.must(err)
	return a
}

// says is code and remark of an answer.
func (w *wire) says(a *remoting.Command) string { return fmt.Sprintf("%d %s", a.Code, a.Remark) }

func (w *wire) ok(a *remoting.Command) *remoting.Command {
	if a.Code != remoting.ResSuccess {
		w.must(fmt.Errorf("answered %s", w.says(a)))
	}
	return a
}

// connect is a connection for bytes that no client would send.
func (w *wire) connect(addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	w.must(err)
	w.must(c.SetDeadline(time.Now().Add(5 * time.Second)))
	return c
}

// topic makes one with queues for reading and writing.
func (w *wire) topic(queues int32) string { return w.topicWith(queues, 6, "") }

func (w *wire) topicWith(queues, perm int32, kind string) string {
	name := w.fresh("topic")
	w.putTopic(name, queues, perm, kind)
	return name
}

func (w *wire) putTopic(name string, queues, perm int32, kind string) {
	h := &remoting.UpdateAndCreateTopicRequest{Topic: name, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues,
		Perm: perm, TopicFilterType: "SINGLE_TAG"}
	if kind != "" {
		h.Attributes = "+message.type=" + kind
	}
	w.ok(w.call(w.broker(), remoting.ReqUpdateAndCreateTopic, h, nil))
}

// group makes one.
func (w *wire) group() string {
	name := w.fresh("group")
	w.ok(w.putGroup(name, 1))
	return name
}

// liteGroup is a group of consumers of the topic's lite topics; attributes are pairs.
func (w *wire) liteGroup(topic string, attributes ...string) string {
	group := w.fresh("group")
	w.ok(w.call(w.broker(), remoting.ReqUpdateAndCreateSubscriptionGroup, nil, liteGroupBody(group, topic, attributes...)))
	return group
}

func liteGroupBody(group, topic string, attributes ...string) []byte {
	more := ""
	for i := 0; i < len(attributes); i += 2 {
		more += fmt.Sprintf(",%q:%q", attributes[i], attributes[i+1])
	}
	return fmt.Appendf(nil,
		`{"groupName":%q,"consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,"retryQueueNums":1,"retryMaxTimes":16,"brokerId":0,"whichBrokerWhenConsumeSlowly":1,"notifyConsumerIdsChangedEnable":true,"attributes":{"+lite.bind.topic":%q%s}}`,
		group, topic, more)
}

func (w *wire) putGroup(name string, retryQueues int) *remoting.Command {
	return w.call(w.broker(), remoting.ReqUpdateAndCreateSubscriptionGroup, nil, fmt.Appendf(nil,
		`{"groupName":%q,"consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,"retryQueueNums":%d,"retryMaxTimes":16,"brokerId":0,"whichBrokerWhenConsumeSlowly":1,"notifyConsumerIdsChangedEnable":true}`,
		name, retryQueues))
}

func (w *wire) sendHeader(topic, properties string) *remoting.SendMessageRequest {
	return &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
		BornTimestamp: time.Now().UnixMilli(), Properties: properties}
}

func (w *wire) send(topic, body, properties string) *remoting.Command {
	return w.sendTo(topic, 0, body, properties)
}

func (w *wire) sendTo(topic string, queue int32, body, properties string) *remoting.Command {
	h := w.sendHeader(topic, properties)
	h.QueueID = queue
	return w.call(w.broker(), remoting.ReqSendMessageV2, h, []byte(body))
}

// filled is a topic of one queue with these messages, which can be read.
func (w *wire) filled(bodies ...string) string {
	topic := w.topic(1)
	w.fill(topic, 0, bodies...)
	return topic
}

func (w *wire) fill(topic string, queue int32, bodies ...string) {
	for _, b := range bodies {
		w.ok(w.sendTo(topic, queue, b, string(message.Properties("").With(message.PropertyUniqKey, message.NewUniqueID()))))
	}
	w.until("dispatch", func() bool { return w.end(topic, queue) >= int64(len(bodies)) })
}

// end is the queue's dispatched end.
func (w *wire) end(topic string, queue int32) int64 {
	var at remoting.GetMaxOffsetResponse
	w.must(w.ok(w.call(w.broker(), remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: topic, QueueID: queue, Committed: remoting.Some(true)}, nil)).Decode(&at))
	return at.Offset
}
