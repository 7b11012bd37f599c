// Package names builds and takes apart the names that carry meaning: retry topics (v1
// and v2), dead-letter topics, system topics and groups, and checks names for legality.
//
// Invariants: pure functions; no state. Neighbours: everybody above.
package names

import "strings"

// Prefixes and separators that give a name its meaning.
const (
	RetryPrefix       = "%RETRY%"
	DeadLetterPrefix  = "%DLQ%"
	LightPrefix       = "%LMQ%"
	SystemTopicPrefix = "rmq_sys_"
	SystemGroupPrefix = "CID_RMQ_SYS_"
	ReplySuffix       = "_REPLY_TOPIC"

	retryV1Separator = "_"
	retryV2Separator = "+"
)

// Retry is the topic of a group's classic retries (send-back).
func Retry(group string) string { return RetryPrefix + group }

// DeadLetter is the topic that a group's messages go to after their last attempt.
func DeadLetter(group string) string { return DeadLetterPrefix + group }

// PopRetryV1 is the older name of a group's POP retries of one topic. It can't be taken
// apart without knowing the group, and two pairs may share a name.
func PopRetryV1(topic, group string) string {
	return RetryPrefix + group + retryV1Separator + topic
}

// PopRetryV2 is the newer name: its separator is legal in neither topics nor groups.
func PopRetryV2(topic, group string) string {
	return RetryPrefix + group + retryV2Separator + topic
}

// Reply is the topic that carries a cluster's answers of request-reply.
func Reply(cluster string) string { return cluster + ReplySuffix }

// ReviveLog is the topic of Apache's POP check points.
func ReviveLog(cluster string) string { return SystemTopicPrefix + "REVIVE_LOG_" + cluster }

// IsRetry reports whether topic is a retry topic of any kind.
func IsRetry(topic string) bool { return strings.HasPrefix(topic, RetryPrefix) }

// IsDeadLetter reports whether topic is a dead-letter topic.
func IsDeadLetter(topic string) bool { return strings.HasPrefix(topic, DeadLetterPrefix) }

// IsLight reports whether topic names a light queue.
func IsLight(topic string) bool { return strings.HasPrefix(topic, LightPrefix) }

// LiteMark stands before and between the parts of a lite topic's queue name; it is legal in
// no topic's name.
const LiteMark = "$"

const litePrefix = LightPrefix + LiteMark

// Lite is the light queue of a lite topic: %LMQ%$parent$lite.
func Lite(parent, lite string) string { return litePrefix + parent + LiteMark + lite }

// LitePrefix is what the light queues of all lite topics of a parent begin with.
func LitePrefix(parent string) string { return litePrefix + parent + LiteMark }

// IsLite reports whether topic names the queue of a lite topic.
func IsLite(topic string) bool { return strings.HasPrefix(topic, litePrefix) }

// OfLite takes the name of a lite topic's queue apart.
func OfLite(queue string) (parent, lite string, ok bool) {
	rest, ok := strings.CutPrefix(queue, litePrefix)
	if !ok {
		return "", "", false
	}
	parent, lite, ok = strings.Cut(rest, LiteMark)
	if !ok || parent == "" || lite == "" || strings.Contains(lite, LiteMark) {
		return "", "", false
	}
	return parent, lite, true
}

// IsPopRetryV2 reports whether topic is a POP retry topic in its newer form.
func IsPopRetryV2(topic string) bool {
	return IsRetry(topic) && strings.Contains(topic, retryV2Separator)
}

// GroupOf is the group that a classic retry or a dead-letter topic belongs to, and the
// group of a v2 POP retry topic. Of a v1 POP retry topic it is group and topic together,
// since nothing tells where one ends.
func GroupOf(topic string) (string, bool) {
	if g, ok := strings.CutPrefix(topic, DeadLetterPrefix); ok {
		return g, true
	}
	g, ok := strings.CutPrefix(topic, RetryPrefix)
	if !ok {
		return "", false
	}
	g, _, _ = strings.Cut(g, retryV2Separator)
	return g, true
}

// OriginTopic is the topic whose messages the group's POP retry topic holds, v1 or v2.
func OriginTopic(retryTopic, group string) (string, bool) {
	rest, ok := strings.CutPrefix(retryTopic, RetryPrefix)
	if !ok {
		return "", false
	}
	if rest, ok = strings.CutPrefix(rest, group); !ok {
		return "", false
	}
	for _, separator := range []string{retryV2Separator, retryV1Separator} {
		if topic, ok := strings.CutPrefix(rest, separator); ok && topic != "" {
			return topic, true
		}
	}
	return "", false
}
