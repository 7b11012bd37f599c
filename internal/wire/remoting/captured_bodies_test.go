package remoting

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// requestBodies and responseBodies are the JSON bodies by request code.
var (
	requestBodies = map[int32]func() Body{
		ReqHeartBeat:                        func() Body { return new(HeartbeatData) },
		ReqLockBatchMQ:                      func() Body { return new(LockBatchBody) },
		ReqUnlockBatchMQ:                    func() Body { return new(LockBatchBody) },
		ReqUpdateAndCreateSubscriptionGroup: func() Body { return new(SubscriptionGroupConfig) },
		ReqCheckClientConfig:                func() Body { return new(CheckClientBody) },
		ReqQueryAssignment:                  func() Body { return new(QueryAssignmentRequestBody) },
		ReqSetMessageRequestMode:            func() Body { return new(SetMessageRequestModeBody) },
		ReqBatchAckMessage:                  func() Body { return new(BatchAckBody) },
	}
	responseBodies = map[int32]func() Body{
		ReqGetRouteInfoByTopic:           func() Body { return new(TopicRouteData) },
		ReqGetBrokerClusterInfo:          func() Body { return new(ClusterInfo) },
		ReqGetConsumerListByGroup:        func() Body { return new(ConsumerListBody) },
		ReqLockBatchMQ:                   func() Body { return new(LockBatchResponseBody) },
		ReqGetTopicStatsInfo:             func() Body { return new(TopicStatsTable) },
		ReqGetConsumeStats:               func() Body { return new(ConsumeStats) },
		ReqGetConsumerConnectionList:     func() Body { return new(ConsumerConnection) },
		ReqGetAllTopicListFromNameServer: func() Body { return new(TopicList) },
		ReqGetTopicConfig:                func() Body { return new(TopicConfig) },
		ReqGetSubscriptionGroupConfig:    func() Body { return new(SubscriptionGroupConfig) },
		ReqQueryAssignment:               func() Body { return new(QueryAssignmentResponseBody) },
		ReqRegisterBroker:                func() Body { return new(KVTable) },
	}
)

// TestCapturedBodies reads the bodies of the captured frames, writes them again and finds
// the same bytes, in whatever order: nothing is lost, nothing is written in another form.
// Of requests there may be more: members that some clients leave out.
func TestCapturedBodies(t *testing.T) {
	for name, frame := range captured(t) {
		code, err := strconv.Atoi(strings.Split(filepath.Base(name), "-")[0])
		if err != nil {
			t.Errorf("%s: the name does not begin with a request code", name)
			continue
		}
		var c Command
		if err := c.Parse(bytes.Clone(frame[LengthSize:])); err != nil {
			continue // TestCapturedFrames says so
		}
		body := requestBodies[int32(code)]
		if c.IsResponse() {
			body = responseBodies[int32(code)]
		}
		if body == nil || len(c.Body) == 0 {
			continue
		}
		b := body()
		if err := Unmarshal(c.Body, b); err != nil {
			t.Errorf("%s: %v\n%s", name, err, c.Body)
			continue
		}
		if standard := bytes.Contains(c.Body, []byte(`{"0":`)); !holdsBytes(marshal(b, standard), c.Body, c.IsResponse()) {
			t.Errorf("%s:\nwas   %s\nbecame %s", name, c.Body, marshal(b, standard))
		}
	}
}

// holdsBytes reports whether a has every byte of b as often, and if exact no others.
func holdsBytes(a, b []byte, exact bool) bool {
	var count [256]int
	for _, c := range a {
		count[c]++
	}
	for _, c := range b {
		count[c]--
	}
	for _, n := range count {
		if n < 0 || (exact && n > 0) {
			return false
		}
	}
	return true
}

var responseHeaders = map[int32]func() Header{
	ReqSendMessage:                func() Header { return new(SendMessageResponse) },
	ReqSendMessageV2:              func() Header { return new(SendMessageResponse) },
	ReqSendBatchMessage:           func() Header { return new(SendMessageResponse) },
	ReqPullMessage:                func() Header { return new(PullMessageResponse) },
	ReqLitePullMessage:            func() Header { return new(PullMessageResponse) },
	ReqQueryConsumerOffset:        func() Header { return new(QueryConsumerOffsetResponse) },
	ReqGetMaxOffset:               func() Header { return new(GetMaxOffsetResponse) },
	ReqHeartBeat:                  func() Header { return new(HeartbeatResponse) },
	ReqRegisterBroker:             func() Header { return new(RegisterBrokerResponse) },
	ReqPopMessage:                 func() Header { return new(PopMessageResponse) },
	ReqChangeMessageInvisibleTime: func() Header { return new(ChangeMessageInvisibleTimeResponse) },
}

// TestCapturedResponseHeaders holds that every field of a captured answer is one of its
// header's and is written again as it was.
func TestCapturedResponseHeaders(t *testing.T) {
	for name, frame := range captured(t) {
		code, _ := strconv.Atoi(strings.Split(filepath.Base(name), "-")[0])
		var c Command
		if err := c.Parse(bytes.Clone(frame[LengthSize:])); err != nil || !c.IsResponse() || c.Ext.Len() == 0 {
			continue
		}
		made := responseHeaders[int32(code)]
		if made == nil {
			t.Errorf("%s: no response header is known for code %d", name, code)
			continue
		}
		h := made()
		if err := c.Decode(h); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var again Command
		if err := again.Parse(AppendResponse(nil, 1, c.Code, "", h, nil)[LengthSize:]); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Ext.Each(func(field, value []byte) {
			if got, _ := again.Ext.Get(string(field)); got != string(value) {
				t.Errorf("%s: field %s: %q became %q", name, field, value, got)
			}
		})
	}
}
