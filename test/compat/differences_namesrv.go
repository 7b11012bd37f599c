package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

var namesrvDifferences = []difference{
	{
		row: "an offset that rides along with a pull and is behind the stored one", apache: `at 1`, bolide: `at 3`,
		ask: func(w *wire) string {
			topic, group := w.filled("a", "b", "c", "d"), w.group()
			for _, offset := range []int64{3, 1} {
				w.ok(w.call(w.broker(), remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: group, Topic: topic, MaxMsgNums: 1,
					SysFlag: 1 | 4, CommitOffset: offset, Subscription: "*", ExpressionType: "TAG", SubVersion: time.Now().UnixMilli()}, nil))
			}
			return fmt.Sprint("at ", w.offset(group, topic))
		},
	}, {
		row: "DELETE_SUBSCRIPTIONGROUP without `cleanOffset`", apache: `at 2`, bolide: `none`,
		ask: func(w *wire) string {
			topic, group := w.filled("a", "b", "c"), w.group()
			w.ok(w.call(w.broker(), remoting.ReqUpdateConsumerOffset, &remoting.UpdateConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, CommitOffset: 2}, nil))
			w.ok(w.call(w.broker(), remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupRequest{GroupName: group}, nil))
			if at := w.offset(group, topic); at >= 0 {
				return fmt.Sprint("at ", at)
			}
			return "none"
		},
	}, {
		row: "topics that a start creates", apache: `.*rmq_sys_REVIVE_LOG_.*`, bolide: `0`,
		ask: func(w *wire) string {
			var list remoting.TopicList
			w.must(remoting.Unmarshal(w.ok(w.call(w.namesrv(), remoting.ReqGetAllTopicListFromNameServer, nil, nil)).Body, &list))
			system := []string{"0"}
			for _, name := range list.TopicList {
				if strings.HasPrefix(name, "rmq_sys_REVIVE_LOG_") || strings.HasPrefix(name, "rmq_sys_SYNC_BROKER_MEMBER_") {
					system = append(system, name)
				}
			}
			return strings.Join(system, " ")
		},
	}, {
		row: "settings of a group: numbers out of range, more than 65,535 queues", apache: `0 `, bolide: `\d+ .*retryQueueNums.*65,?535.*`,
		ask: func(w *wire) string { return w.says(w.putGroup(w.fresh("group"), 70_000)) },
	}, {
		row: "UPDATE_NAMESRV_CONFIG, unknown key", apache: `0 `, bolide: `\d+ .*noSuchKey.*`,
		ask: func(w *wire) string {
			return w.says(w.call(w.namesrv(), remoting.ReqUpdateNamesrvConfig, nil, []byte("noSuchKey=1\n")))
		},
	}, {
		row: "key-value configuration of more than 64 MiB, values over 1 MiB", apache: `0 `, bolide: `1 .*1048576`,
		ask: func(w *wire) string {
			h := &remoting.PutKVConfigRequest{Namespace: "diff", Key: "large", Value: strings.Repeat("x", 1<<20+1)}
			a := w.call(w.namesrv(), remoting.ReqPutKVConfig, h, nil)
			w.ok(w.call(w.namesrv(), remoting.ReqDeleteKVConfig, &remoting.DeleteKVConfigRequest{Namespace: "diff", Key: "large"}, nil))
			return w.says(a)
		},
	}, {
		row: "route of a retry topic that is still to be made", apache: `17 .*`, bolide: `0 `,
		ask: func(w *wire) string { return w.says(w.route("%RETRY%" + w.group())) },
	}, {
		row: "topics of a broker in the same process that are deleted", apache: `routed`, bolide: `17`,
		ask: func(w *wire) string {
			topic := w.filled("a")
			w.until("the route", func() bool { return w.route(topic).Code == remoting.ResSuccess })
			w.ok(w.call(w.broker(), remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: topic}, nil))
			if a := w.route(topic); a.Code != remoting.ResSuccess {
				return fmt.Sprint(a.Code)
			}
			return "routed"
		},
	},
}

// offset is the stored one of queue 0, or −1.
func (w *wire) offset(group, topic string) int64 {
	a := w.call(w.broker(), remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: group, Topic: topic, SetZeroIfNotFound: remoting.Some(false)}, nil)
	if a.Code == remoting.ResQueryNotFound {
		return -1
	}
	var at remoting.QueryConsumerOffsetResponse
	w.must(w.ok(a).Decode(&at))
	return at.Offset
}

func (w *wire) route(topic string) *remoting.Command {
	return w.call(w.namesrv(), remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: topic}, nil)
}
