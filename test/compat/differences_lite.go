package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/wire/message"
	topics "github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// whereItIs lets a group go on where it is; Apache's broker needs to be told.
var whereItIs = remoting.LiteOffset{Type: "POLICY"}

var liteDifferences = []difference{
	{
		row: "`lite.sub.client.quota`", apache: `0 `, bolide: `2018 .*limit.* 2 .*lite\.sub\.client\.quota.*`,
		ask: func(w *wire) string {
			l := w.liteTopic("+lite.sub.client.quota", "2")
			return w.says(l.subscribe(whereItIs, "a", "b", "c"))
		},
	}, {
		row: "LITE_SUBSCRIPTION_CTL, group that is not bound to the parent", apache: `0 `, bolide: `29 .*lite\.bind\.topic.*`,
		ask: func(w *wire) string {
			l := w.liteTopic()
			l.group = w.liteTopic().group
			return w.says(l.subscribe(whereItIs, "a"))
		},
	}, {
		row: "LITE_SUBSCRIPTION_CTL, illegal name of a lite topic", apache: `0 `, bolide: `604 .*a/b.*`,
		ask: func(w *wire) string { return w.says(w.liteTopic().subscribe(whereItIs, "a/b")) },
	}, {
		row: "lite topics in one answer to POP_LITE_MESSAGE", apache: `4 of 2`, bolide: `2 of 1`,
		ask: func(w *wire) string {
			l := w.liteTopic()
			w.ok(l.subscribe(whereItIs, "a", "b"))
			for _, lite := range []string{"a", "a", "b", "b"} {
				l.send(lite)
			}
			of := map[string]int{}
			got := l.pop()
			for _, m := range got {
				of[m.Properties.Value(message.PropertyLiteTopic)]++
			}
			return fmt.Sprintf("%d of %d", len(got), len(of))
		},
	}, {
		row: "subscription to a lite topic from a time on", apache: `2`, bolide: `1`,
		ask: func(w *wire) string {
			l := w.liteTopic()
			l.send("a")
			since := time.Now().Add(time.Millisecond)
			for time.Now().Before(since) {
				time.Sleep(time.Millisecond)
			}
			l.send("a")
			w.ok(l.subscribe(remoting.LiteOffset{Type: "TIMESTAMP", Value: since.UnixMilli()}, "a"))
			return fmt.Sprint(len(l.pop()))
		},
	}, {
		row: "subscription to a lite topic from an offset beyond its end", apache: `0`, bolide: `1`,
		ask: func(w *wire) string {
			l := w.liteTopic()
			l.send("a")
			w.ok(l.subscribe(remoting.LiteOffset{Type: "OFFSET", Value: 99}, "a"))
			l.send("a")
			return fmt.Sprint(len(l.pop()))
		},
	}, {
		row: "subscription from an offset to a lite topic that is not there", apache: `7`, bolide: `-1`,
		ask: func(w *wire) string {
			l := w.liteTopic()
			w.ok(l.subscribe(remoting.LiteOffset{Type: "OFFSET", Value: 7}, "none"))
			return fmt.Sprint(w.offset(l.group, topics.Lite(l.topic, "none")))
		},
	}, {
		row: "ChangeInvisibleDuration of a lite topic's message that does not name the lite topic", apache: `.+`, bolide: `OK .*`,
		ask: func(w *wire) string {
			l, c := w.liteTopic(), w.client()
			l.client = c.id
			c.needSettings(v2.ClientType_LITE_PUSH_CONSUMER, l.group, l.topic)
			l.send("a")
			w.ok(l.subscribe(whereItIs, "a"))
			messages, st := c.receive(l.topic, l.group)
			if len(messages) != 1 {
				return "received nothing: " + w.status(st, nil)
			}
			resp, err := w.grpc.ChangeInvisibleDuration(c.ctx(), &v2.ChangeInvisibleDurationRequest{Group: name(l.group), Topic: name(l.topic),
				ReceiptHandle: messages[0].GetSystemProperties().GetReceiptHandle(), InvisibleDuration: durationpb.New(time.Minute), MessageId: "id"})
			return w.status(resp.GetStatus(), err)
		},
	}, {
		row: "subscriptions to lite topics of a client whose stream was cut", apache: `ended`, bolide: `stay`,
		ask: func(w *wire) string {
			l := w.liteTopic()
			ctx, cut := context.WithCancel(w.ctx)
			defer cut()
			short := *w
			short.ctx = ctx
			c := short.client()
			l.client = c.id
			c.needSettings(v2.ClientType_LITE_PUSH_CONSUMER, l.group, l.topic)
			resp, err := w.grpc.SyncLiteSubscription(c.ctx(), &v2.SyncLiteSubscriptionRequest{Action: v2.LiteSubscriptionAction_PARTIAL_ADD,
				Topic: name(l.topic), Group: name(l.group), LiteTopicSet: []string{"a"}})
			if got := w.status(resp.GetStatus(), err); !strings.HasPrefix(got, "OK ") {
				return got
			}
			cut()
			for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				if l.subscriptions() < 1 {
					return "ended"
				}
			}
			return "stay"
		},
	},
}

// liteTopic is a parent topic, a group that is bound to it, and a client of that.
type liteTopic struct {
	*wire
	topic, group, client string
}

func (w *wire) liteTopic(attributes ...string) *liteTopic {
	topic := w.topicWith(1, 6, "LITE")
	return &liteTopic{w, topic, w.liteGroup(topic, attributes...), w.fresh("client")}
}

func (l *liteTopic) subscribe(from remoting.LiteOffset, lites ...string) *remoting.Command {
	return l.call(l.broker(), remoting.ReqLiteSubscriptionCtl, nil, remoting.Marshal(&remoting.LiteSubscriptions{Set: []remoting.LiteSubscription{
		{Action: "PARTIAL_ADD", ClientID: l.client, Group: l.group, Topic: l.topic, LiteTopicSet: lites, OffsetOption: from}}}))
}

// send sends one message, and returns when it can be read.
func (l *liteTopic) send(lite string) {
	queue := topics.Lite(l.topic, lite)
	end := l.end(queue, 0)
	l.ok(l.wire.send(l.topic, "x", string(message.Properties("").WithAll(message.PropertyUniqKey, message.NewUniqueID(), message.PropertyLiteTopic, lite))))
	l.until("dispatch", func() bool { return l.end(queue, 0) > end })
}

// pop takes what there is, without waiting for more than a moment.
func (l *liteTopic) pop() []*message.Message {
	a := l.call(l.broker(), remoting.ReqPopLiteMessage, &remoting.PopLiteMessageRequest{ClientID: l.client, ConsumerGroup: l.group, Topic: l.topic, MaxMsgNum: 32,
		InvisibleTime: 60_000, PollTime: 1000, BornTime: time.Now().UnixMilli()}, nil)
	return l.records(a.Body)
}

// subscriptions is how many the broker knows of the client; −1 for an unknown one.
func (l *liteTopic) subscriptions() int32 {
	a := l.ok(l.call(l.broker(), remoting.ReqGetLiteClientInfo, &remoting.GetLiteClientInfoRequest{ParentTopic: l.topic, Group: l.group, ClientID: l.client, MaxCount: 10}, nil))
	var b remoting.LiteClientInfo
	l.must(remoting.Unmarshal(a.Body, &b))
	return b.LiteTopicCount
}
