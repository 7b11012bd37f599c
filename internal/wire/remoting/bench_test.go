package remoting

import (
	"bytes"
	"strings"
	"testing"
)

// sendFrame is a send as Java clients write it: 1 KiB of body, properties with escapes.
func sendFrame() []byte {
	h := &SendMessageRequest{V2: true, ProducerGroup: "bench-producer", Topic: "BenchTopic", DefaultTopic: "TBW102",
		DefaultTopicQueueNums: 4, QueueID: 3, BornTimestamp: 1764400000000,
		Properties: "UNIQ_KEY\x01C0A8000100002A9F3B1C2D3E4F500001\x02WAIT\x01true\x02TAGS\x01tag\x02KEYS\x01key-17\x02", BrokerName: "broker-a"}
	// Clients write optional fields that are zero, too.
	all := Pairs{}
	var c Command
	if err := c.Parse(AppendRequest(nil, ReqSendMessageV2, 12345, 0, h, nil)[LengthSize:]); err != nil {
		panic(err)
	}
	c.Ext.Each(func(name, value []byte) {
		if string(name) == "n" {
			all = append(all, Pair{"j", "0"}, Pair{"k", "false"}, Pair{"m", "false"})
		}
		all = append(all, Pair{string(name), string(value)})
	})
	return AppendRequest(nil, ReqSendMessageV2, 12345, 0, &all, []byte(strings.Repeat("x", 1024)))
}

func BenchmarkParseSend(b *testing.B) {
	frame := sendFrame()[LengthSize:]
	work := make([]byte, len(frame))
	var names Names
	var c Command
	c.UseNames(&names)
	h := SendMessageRequest{V2: true}
	b.ReportAllocs()
	for b.Loop() {
		copy(work, frame) // parsing resolves escapes in place
		if err := c.Parse(work); err != nil {
			b.Fatal(err)
		}
		if err := c.Decode(&h); err != nil {
			b.Fatal(err)
		}
	}
	if h.Topic != "BenchTopic" || !strings.Contains(h.Properties, "\x01true\x02") {
		b.Fatal(h)
	}
}

func BenchmarkAppendSendResponse(b *testing.B) {
	h := &SendMessageResponse{MsgID: "C0A8000100002A9F000000000000ABCD", QueueID: 3, QueueOffset: 123456,
		TransactionID: "C0A8000100002A9F3B1C2D3E4F500001", Region: "DefaultRegion", TraceOn: "true"}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = AppendResponse(out[:0], 12345, ResSuccess, "", h, nil)
	}
}

func BenchmarkAppendPullResponse(b *testing.B) {
	h := &PullMessageResponse{SuggestWhichBrokerID: 0, NextBeginOffset: 123456, MinOffset: 0, MaxOffset: 200000}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = AppendResponseHead(out[:0], 12345, ResSuccess, "FOUND", h, 40000)
	}
}

func BenchmarkHeartbeatBody(b *testing.B) {
	hb := &HeartbeatData{ClientID: "10.0.0.1@12345#67890", ProducerDataSet: []ProducerData{{"p"}}, ConsumerDataSet: []ConsumerData{{
		ConsumeFromWhere: ConsumeFromLastOffset, ConsumeType: ConsumePassively, GroupName: "g", MessageModel: Clustering,
		SubscriptionDataSet: []SubscriptionData{{ExpressionType: "TAG", SubString: "*", SubVersion: 1764400000000, Topic: "t"}, {ExpressionType: "TAG", SubString: "*", SubVersion: 1764400000000, Topic: "%RETRY%g"}}}}}
	data := Marshal(hb)
	b.ReportAllocs()
	for b.Loop() {
		var out HeartbeatData
		if err := Unmarshal(bytes.Clone(data), &out); err != nil {
			b.Fatal(err)
		}
	}
}
