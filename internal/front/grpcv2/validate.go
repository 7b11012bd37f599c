package grpcv2

import (
	"strings"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// Limits of what a client may send that no setting changes, as in Apache RocketMQ's proxy.
const (
	maxLiteTopic = 64        // bytes
	maxRecovery  = time.Hour // orphaned transaction
	maxBatch     = 32
)

// milliseconds is a time of the settings.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// topicName is the checked name of a topic that clients may use.
func topicName(r *v2.Resource) (string, error) {
	name := r.GetName()
	return name, checkTopic(name)
}

func checkTopic(name string) error {
	if err := names.CheckTopic(name); err != nil {
		return refuse(v2.Code_ILLEGAL_TOPIC, "%s", err)
	}
	if names.IsSystemTopic(name) {
		return refuse(v2.Code_ILLEGAL_TOPIC, "cannot access system topic")
	}
	return nil
}

// groupName is the checked name of a consumer group that clients may use.
func groupName(r *v2.Resource) (string, error) {
	name := r.GetName()
	return name, checkGroup(name)
}

func checkGroup(name string) error {
	if err := names.CheckGroup(name); err != nil {
		return refuse(v2.Code_ILLEGAL_CONSUMER_GROUP, "%s", err)
	}
	if names.IsSystemGroup(name) {
		return refuse(v2.Code_ILLEGAL_CONSUMER_GROUP, "cannot use system consumer group")
	}
	return nil
}

func topicAndGroup(t, g *v2.Resource) (topic, group string, err error) {
	if topic, err = topicName(t); err != nil {
		return
	}
	group, err = groupName(g)
	return
}

func checkTag(tag string) error {
	switch {
	case tag == "":
		return nil
	case isBlank(tag):
		return refuse(v2.Code_ILLEGAL_MESSAGE_TAG, "tag cannot be blank")
	case strings.Contains(tag, "|"):
		return refuse(v2.Code_ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
	case hasControl(tag):
		return refuse(v2.Code_ILLEGAL_MESSAGE_TAG, "tag cannot contain control characters")
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return nil
	case isBlank(key):
		return refuse(v2.Code_ILLEGAL_MESSAGE_KEY, "key cannot be blank")
	case hasControl(key):
		return refuse(v2.Code_ILLEGAL_MESSAGE_KEY, "key cannot contain control characters")
	}
	return nil
}

// checkMessageGroup wants a group to be shorter than below.
func checkMessageGroup(group string, below int32) error {
	switch {
	case isBlank(group):
		return refuse(v2.Code_ILLEGAL_MESSAGE_GROUP, "message group cannot be blank")
	case len(group) >= int(below):
		return refuse(v2.Code_ILLEGAL_MESSAGE_GROUP, "message group exceed the max size %d", below)
	case hasControl(group):
		return refuse(v2.Code_ILLEGAL_MESSAGE_GROUP, "message group cannot contain control characters")
	}
	return nil
}

func checkLiteTopic(name string) error {
	if isBlank(name) {
		return refuse(v2.Code_ILLEGAL_LITE_TOPIC, "lite topic cannot be blank")
	}
	if len(name) > maxLiteTopic {
		return refuse(v2.Code_ILLEGAL_LITE_TOPIC, "lite topic exceed the max size %d", maxLiteTopic)
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return refuse(v2.Code_ILLEGAL_LITE_TOPIC, "lite topic may have letters, digits, '-' and '_' only")
		}
	}
	return nil
}

func checkInvisible(d, least, most time.Duration) error {
	if d < least {
		return refuse(v2.Code_ILLEGAL_INVISIBLE_TIME, "the invisibleTime is too small. min is %d", least.Milliseconds())
	}
	if d > most {
		return refuse(v2.Code_ILLEGAL_INVISIBLE_TIME, "the invisibleTime is too large. max is %d", most.Milliseconds())
	}
	return nil
}

// hasControl reports whether s has an ISO control character: U+0000 to U+001F and U+007F
// to U+009F. The separators of stored properties are among them.
func hasControl(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c < 0x20 || c == 0x7f {
			return true
		}
		if c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0 { // U+0080 to U+009F in UTF-8
			return true
		}
	}
	return false
}
