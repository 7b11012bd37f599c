package compat

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"
)

// answer is a Remoting response.
type answer struct {
	Code      int               `json:"code"`
	Remark    string            `json:"remark"`
	ExtFields map[string]string `json:"extFields"`
	body      []byte
}

// ask sends one Remoting request made by hand: topics and groups are made without the clients
// that are under test.
func ask(addr string, code int, fields map[string]string, body []byte) (answer, error) {
	var a answer
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return a, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	header, err := json.Marshal(map[string]any{
		"code": code, "flag": 0, "language": "JAVA", "opaque": 1, "version": 513,
		"serializeTypeCurrentRPC": "JSON", "extFields": fields,
	})
	if err != nil {
		return a, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := c.Write(frame); err != nil {
		return a, err
	}
	var lengths [8]byte
	if _, err := io.ReadFull(c, lengths[:]); err != nil {
		return a, err
	}
	rest := make([]byte, int(binary.BigEndian.Uint32(lengths[:4]))-4)
	if _, err := io.ReadFull(c, rest); err != nil {
		return a, err
	}
	size := int(binary.BigEndian.Uint32(lengths[4:]) & 0xffffff)
	a.body = rest[size:]
	return a, json.Unmarshal(rest[:size], &a)
}

// newTopic makes a topic of 8 queues, and returns its name. kind is its message type, for example
// NORMAL.
func (s server) newTopic(t *testing.T, kind string) string {
	t.Helper()
	topic := fresh(t, "topic")
	a, err := ask(s.broker, 17, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "8", "writeQueueNums": "8",
		"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
		"attributes": "+message.type=" + kind,
	}, nil)
	if err != nil || a.Code != 0 {
		t.Fatalf("create topic %s: %v, code %d %q", topic, err, a.Code, a.Remark)
	}
	s.awaitRoute(t, topic)
	return topic
}

// awaitRoute waits until the name server knows the topic.
func (s server) awaitRoute(t *testing.T, topic string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		a, err := ask(s.namesrv, 105, map[string]string{"topic": topic}, nil)
		if err == nil && a.Code == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no route for topic %s: %v, code %d %q", topic, err, a.Code, a.Remark)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// newGroup makes a consumer group with this retry limit, and returns its name.
func (s server) newGroup(t *testing.T, retries int, orderly bool) string {
	t.Helper()
	return s.newGroupWith(t, retries, orderly, map[string]string{})
}

// newLiteGroup makes a group that is bound to a topic of type LITE.
func (s server) newLiteGroup(t *testing.T, topic string) string {
	t.Helper()
	return s.newGroupWith(t, 16, false, map[string]string{"+lite.bind.topic": topic})
}

func (s server) newGroupWith(t *testing.T, retries int, orderly bool, attributes map[string]string) string {
	t.Helper()
	group := fresh(t, "group")
	body, err := json.Marshal(map[string]any{
		"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
		"consumeMessageOrderly": orderly, "retryQueueNums": 1, "retryMaxTimes": retries, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
		"notifyConsumerIdsChangedEnable": true, "groupSysFlag": 0, "consumeTimeoutMinute": 15, "attributes": attributes,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ask(s.broker, 200, nil, body)
	if err != nil || a.Code != 0 {
		t.Fatalf("create group %s: %v, code %d %q", group, err, a.Code, a.Remark)
	}
	return group
}

// awaitDeadLetter waits for the group's first dead letter.
func (s server) awaitDeadLetter(t *testing.T, group string) {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for {
		a, err := ask(s.broker, 30, map[string]string{"topic": "%DLQ%" + group, "queueId": "0"}, nil)
		if err == nil && a.Code == 0 && a.ExtFields["offset"] == "1" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no dead letter: %v %+v", err, a)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
