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
