package remoting

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// bodies has one of every body.
func bodies() []Body {
	return []Body{
		&LockBatchBody{}, &LockBatchResponseBody{}, &QueryAssignmentRequestBody{}, &QueryAssignmentResponseBody{},
		&SetMessageRequestModeBody{}, &MessageRequestModes{}, &BatchAckBody{}, &ResetOffsetBody{}, &ConsumerStatusBody{},
		&TopicRouteData{}, &ClusterInfo{}, &BrokerMemberGroupBody{}, &DataVersion{}, &KVTable{}, &TopicList{}, &GroupList{},
		&RegisterBrokerBody{}, &TopicConfig{}, &TopicConfigTable{}, &CreateTopicListBody{}, &TopicStatsTable{},
		&ConsumerOffsetTable{}, &DelayOffsetTable{}, &QueryConsumeQueueBody{}, &QueryCorrectionOffsetBody{}, &BrokerStatsData{},
		&SubscriptionGroupConfig{}, &SubscriptionGroupTable{}, &SubscriptionGroupList{}, &GroupForbidden{}, &ConsumeStats{},
		&ConsumeStatsList{}, &QueryConsumeTimeSpanBody{}, &QuerySubscriptionBody{}, &HeartbeatData{}, &CheckClientBody{},
		&ConsumerListBody{}, &ConsumerConnection{}, &ProducerConnection{}, &ProducerTable{}, &ConsumeMessageDirectlyResult{},
		&ConsumerRunningInfo{}, &TimerCounts{}, &TransactionCounts{},
	}
}

// stuff gives every field of a body a value, two elements to every list and map.
func stuff(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("s" + string(rune('a'+*n%26)) + "\"\\\n\x02 ü😀")
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(-*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 8)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		stuff(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			stuff(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		stuff(v.Index(0), n)
		stuff(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			stuff(k, n)
			stuff(x, n)
			v.SetMapIndex(k, x)
		}
	default:
		panic(v.Type().String())
	}
}

func TestBodiesReadWhatTheyWrite(t *testing.T) {
	for _, in := range bodies() {
		n := 0
		stuff(reflect.ValueOf(in).Elem(), &n)
		for _, data := range [][]byte{Marshal(in), MarshalStandard(in)} {
			out := reflect.New(reflect.TypeOf(in).Elem()).Interface().(Body)
			if err := Unmarshal(data, out); err != nil {
				t.Errorf("%T: %v\n%s", in, err, data)
			} else if again := Marshal(out); string(again) != string(Marshal(in)) {
				t.Errorf("%T:\nwrote %s\nread  %s", in, data, again)
			}
		}
		if data := MarshalStandard(in); !json.Valid(data) {
			t.Errorf("%T: no JSON: %s", in, data)
		}
		// Members stand in alphabetical order, as fields do.
		var names []string
		for i := range reflect.TypeOf(in).Elem().NumField() {
			names = append(names, strings.ToLower(reflect.TypeOf(in).Elem().Field(i).Name))
		}
		if _, batch := in.(*BatchAckBody); !batch && !slices.IsSorted(names) {
			if _, q := in.(*QueryAssignmentResponseBody); !q {
				t.Errorf("%T: fields are out of order: %v", in, names)
			}
		}
		// Nothing but zero values and nulls.
		if err := Unmarshal([]byte("{}"), in); err != nil {
			t.Errorf("%T: {}: %v", in, err)
		}
		if err := Unmarshal([]byte("null"), in); err != nil {
			t.Errorf("%T: null: %v", in, err)
		}
	}
}

func TestFastjsonForms(t *testing.T) {
	for _, tt := range []struct {
		name string
		body Body
		want string
	}{
		{"bare numbers as keys", &TopicRouteData{BrokerDatas: []BrokerData{{BrokerName: "b", Cluster: "c", BrokerAddrs: map[int64]string{0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}}},
			QueueDatas: []QueueData{{BrokerName: "b", Perm: 6, ReadQueueNums: 8, WriteQueueNums: 8}}},
			`{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"b","cluster":"c","enableActingMaster":false}],` +
				`"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`},
		{"queues as keys", &TopicStatsTable{OffsetTable: map[MessageQueue]TopicOffset{{"t", "b", 1}: {3, 2, 1}, {"t", "b", 0}: {}}},
			`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0},` +
				`{"brokerName":"b","queueId":1,"topic":"t"}:{"lastUpdateTimestamp":3,"maxOffset":2,"minOffset":1}},"topicPutTps":0.0}`},
		{"offsets", &ConsumerOffsetTable{OffsetTable: map[string]map[int32]int64{"t@g": {1: 7, 0: 12}}}, `{"offsetTable":{"t@g":{0:12,1:7}}}`},
		{"unknown client", &QueryAssignmentResponseBody{}, `{}`},
		{"no assignment", &QueryAssignmentResponseBody{Known: true}, `{"messageQueueAssignments":[]}`},
	} {
		if got := string(Marshal(tt.body)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	route := &TopicRouteData{BrokerDatas: []BrokerData{{BrokerAddrs: map[int64]string{0: "a"}}}}
	if got := string(MarshalRoute(route, 317, false)); !strings.Contains(got, `{0:"a"}`) {
		t.Error(got)
	}
	for _, got := range []string{string(MarshalRoute(route, 317, true)), string(MarshalRoute(route, 401, false))} {
		if !strings.Contains(got, `{"0":"a"}`) || !json.Valid([]byte(got)) {
			t.Error(got)
		}
	}
}

func TestLenientForms(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		into       Body
		want       string
	}{
		{"everything odd at once", ` { 'clientID' : 'it\'s' , unknown:[{a:{{"x":1}:2}}], "consumerDataSet":[{groupName:"g","consumeType":1,"messageModel":"1",` +
			`"consumeFromWhere":"CONSUME_FROM_TIMESTAMP","subscriptionDataSet":[{"subVersion":"12","codeSet":[1,-2],"tagsSet":null,"topic":"\u0074"}]},], 'heartbeatFingerprint':1.0,"withoutSub":"true"}`,
			&HeartbeatData{}, `{"clientID":"it's","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_TIMESTAMP","consumeType":"CONSUME_PASSIVELY","groupName":"g","messageModel":"CLUSTERING",` +
				`"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[1,-2],"expressionType":"","subString":"","subVersion":12,"tagsSet":[],"topic":"t"}],"unitMode":false}],` +
				`"heartbeatFingerprint":1,"producerDataSet":[],"withoutSub":true}`},
		{"queue keys of both kinds", `{"offsetTable":{{"topic":"t","queueId":3,"brokerName":"b"}:5,"{\"topic\":\"u\",\"queueId\":1}":6}}`,
			&ResetOffsetBody{}, `{"offsetTable":{{"brokerName":"b","queueId":3,"topic":"t"}:5,{"brokerName":"","queueId":1,"topic":"u"}:6}}`},
		{"quoted and bare numbers as keys", `{"offsetTable":{"t@g":{"0":1,1:2,'2':3}}}`, &ConsumerOffsetTable{}, `{"offsetTable":{"t@g":{0:1,1:2,2:3}}}`},
		{"long names of a batch ack", `{"acks":[{"consumerGroup":"g","topic":"t","retry":"1","startOffset":10,"queueId":2,"reviveQueueId":3,"popTime":4,"invisibleTime":5,"bitSet":"BQE="}]}`,
			&BatchAckBody{}, `{"acks":[{"b":"BQE=","c":"g","it":5,"pt":4,"q":2,"r":"1","rq":3,"so":10,"t":"t"}],"brokerName":""}`},
	} {
		if err := Unmarshal([]byte(tt.data), tt.into); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := string(Marshal(tt.into)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestBodyRefusals(t *testing.T) {
	for _, data := range []string{
		``, `x`, `[]`, `{`, `{"clientID"`, `{"clientID":`, `{"clientID":}`, `{"clientID":{}}`, `{"clientID":"a`, `{"clientID":"a\`, `{"clientID":"\u00"}`, `{"clientID":"\q"}`,
		`{}{}`, `{"heartbeatFingerprint":"x"}`, `{"heartbeatFingerprint":3000000000}`, `{"heartbeatFingerprint":1.5}`, `{"withoutSub":2}`,
		`{"consumerDataSet":{}}`, `{"consumerDataSet":[1]}`, `{"consumerDataSet":[{}`, `{,}`, `{"a":1,,}`, `{"x":` + strings.Repeat("[", 1000),
	} {
		if err := Unmarshal([]byte(data), &HeartbeatData{}); !errors.Is(err, ErrBody) {
			t.Errorf("%.60s: %v", data, err)
		}
	}
	many := `{"topicList":[` + strings.Repeat(`"",`, maxItems+1) + `""]}`
	if err := Unmarshal([]byte(many), &TopicList{}); !errors.Is(err, ErrBody) {
		t.Errorf("%d elements: %v", maxItems+1, err)
	}
	if err := Unmarshal([]byte(`{"acks":[{"b":"%%%"}]}`), &BatchAckBody{}); !errors.Is(err, ErrBody) {
		t.Error(err)
	}
}

func TestBatchAckBits(t *testing.T) {
	b := BatchAck{StartOffset: 100}
	want := []int64{100, 107, 108, 163}
	for _, o := range want {
		b.Set(o)
	}
	if got := slices.Collect(b.Offsets); !slices.Equal(got, want) {
		t.Error(got)
	}
}

func TestRegisterBrokerForms(t *testing.T) {
	in := &RegisterBrokerBody{FilterServerList: []string{"f"}, TopicConfigSerializeWrapper: TopicConfigTable{
		DataVersion: DataVersion{3, 0, 99},
		TopicConfigTable: map[string]TopicConfig{
			"t": {TopicName: "t", ReadQueueNums: 8, WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: map[string]string{"message.type": "FIFO"}},
			"u": {TopicName: "u", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 2, TopicFilterType: "SINGLE_TAG", Attributes: map[string]string{}},
		}}}
	for _, compressed := range []bool{false, true} {
		data := MarshalRegisterBroker(in, compressed)
		var out RegisterBrokerBody
		if err := UnmarshalRegisterBroker(data, compressed, &out); err != nil {
			t.Fatal(err)
		}
		if got, want := string(Marshal(&out)), string(Marshal(in)); got != want {
			t.Errorf("compressed %v:\n got %s\nwant %s", compressed, got, want)
		}
		for i := range len(data) - 16 { // the end is not read: static topics
			if err := UnmarshalRegisterBroker(data[:i], compressed, &out); !errors.Is(err, ErrBody) {
				t.Errorf("compressed %v, cut at %d: %v", compressed, i, err)
			}
		}
	}
}

func TestListBodies(t *testing.T) {
	in := []MessageQueue{{"t", "b", 1}, {"t", "b", 2}}
	out, err := UnmarshalList[MessageQueue](MarshalList(in))
	if err != nil || !slices.Equal(in, out) {
		t.Error(out, err)
	}
}
