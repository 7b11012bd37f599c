package names

import (
	"errors"
	"strings"
	"testing"
)

func TestOriginTopic(t *testing.T) {
	for _, c := range []struct {
		retry, group, topic string
		ok                  bool
	}{
		{PopRetryV1("orders", "g"), "g", "orders", true},
		{PopRetryV2("orders", "g"), "g", "orders", true},
		{PopRetryV1("b_c", "a"), "a", "b_c", true},
		{PopRetryV1("c", "a_b"), "a_b", "c", true},
		{PopRetryV2("or_ders", "g_1"), "g_1", "or_ders", true},
		{Retry("g"), "g", "", false},
		{PopRetryV2("", "g"), "g", "", false},
		{PopRetryV1("orders", "g"), "h", "", false},
		{"orders", "g", "", false},
		{"", "", "", false},
	} {
		topic, ok := OriginTopic(c.retry, c.group)
		if topic != c.topic || ok != c.ok {
			t.Errorf("OriginTopic(%q, %q) = %q, %v; want %q, %v", c.retry, c.group, topic, ok, c.topic, c.ok)
		}
	}
}

// R022: the newer names of two pairs never meet, whatever the underscores.
func TestPopRetryV2IsUnique(t *testing.T) {
	if PopRetryV1("b_c", "a") != PopRetryV1("c", "a_b") {
		t.Error("the older form is expected to collide here")
	}
	if PopRetryV2("b_c", "a") == PopRetryV2("c", "a_b") {
		t.Error("the newer form collides")
	}
	if CheckTopic("a+b") == nil || CheckGroup("a+b") == nil {
		t.Error("the separator of the newer form is legal in a name")
	}
}

func TestGroupOf(t *testing.T) {
	for _, c := range []struct {
		topic, group string
		ok           bool
	}{
		{Retry("g"), "g", true},
		{DeadLetter("g"), "g", true},
		{PopRetryV2("t", "g"), "g", true},
		{PopRetryV1("t", "g"), "g_t", true},
		{"t", "", false},
	} {
		if group, ok := GroupOf(c.topic); group != c.group || ok != c.ok {
			t.Errorf("GroupOf(%q) = %q, %v", c.topic, group, ok)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		check func(string) error
		says  string // "" = legal
	}{
		{"orders", CheckTopic, ""},
		{"%RETRY%g_1-2|3", CheckTopic, ""},
		{"", CheckTopic, "blank"},
		{"  ", CheckTopic, "blank"},
		{"a b", CheckTopic, "letters"},
		{"a.b", CheckTopic, "letters"},
		{"../etc", CheckTopic, "letters"},
		{"höhe", CheckTopic, "letters"},
		{strings.Repeat("t", 127), CheckTopic, ""},
		{strings.Repeat("t", 128), CheckTopic, "128 bytes, the limit is 127"},
		{RetryPrefix + strings.Repeat("t", 248), CheckTopic, ""},
		{RetryPrefix + strings.Repeat("t", 249), CheckTopic, "256 bytes, the limit is 255"},
		{strings.Repeat("g", 120), CheckGroup, ""},
		{strings.Repeat("g", 121), CheckGroup, "the group has 121 bytes, the limit is 120"},
	} {
		err := c.check(c.name)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%q refused: %v", c.name, err)
		case c.says != "" && (!errors.Is(err, ErrIllegal) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %v, want a sentence with %q", c.name, err, c.says)
		}
	}
}

func TestSystemNames(t *testing.T) {
	for _, topic := range []string{AutoCreate, Schedule, WheelTimer, "rmq_sys_anything", Trace, Benchmark} {
		if !IsSystemTopic(topic) {
			t.Errorf("%s is not a system topic", topic)
		}
	}
	for _, topic := range []string{"orders", Retry("g"), DeadLetter("g"), ""} {
		if IsSystemTopic(topic) || ForbiddenToSend(topic) {
			t.Errorf("%q is a system topic", topic)
		}
	}
	for _, topic := range []string{AutoCreate, Benchmark, Trace} {
		if ForbiddenToSend(topic) {
			t.Errorf("clients may not send to %s", topic)
		}
	}
	for _, topic := range []string{Schedule, WheelTimer, Half, OpHalf, RocksHalf, RocksOpHalf, TransCheckMaxTime, SelfTest, OffsetMoved} {
		if !ForbiddenToSend(topic) {
			t.Errorf("clients may send to %s", topic)
		}
	}
	if !IsSystemGroup(ToolsGroup) || !IsSystemGroup("CID_RMQ_SYS_X") || IsSystemGroup("g") {
		t.Error("system groups")
	}
}
