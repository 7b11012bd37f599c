package config

import (
	"errors"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	b := DefaultBroker()
	for _, c := range []struct {
		name, value string
		err         error
		says        string
	}{
		{"autoCreateTopicEnable", " False ", nil, ""},
		{"defaultTopicQueueNums", " 4 ", nil, ""},
		{"brokerName", "b1", nil, ""},
		{"defaultTopicQueueNums", "0", ErrValue, "below the limit 1"},
		{"defaultTopicQueueNums", "70000", ErrValue, "over the limit 65535"},
		{"defaultTopicQueueNums", "four", ErrValue, "whole number"},
		{"defaultTopicQueueNums", "99999999999", ErrValue, "over the limit 65535 (queues, 1 to 65535)"},
		{"defaultTopicQueueNums", "99999999999999999999", ErrValue, "over the limit 65535"},
		{"brokerId", "99999999999999999999", ErrValue, "over the limit 9223372036854775807"},
		{"defaultTopicQueueNums", "-99999999999999999999", ErrValue, "below the limit 1"},
		{"defaultTopicQueueNums", "", ErrValue, "it is empty (queues, 1 to 65535); the default is 8"},
		{"defaultTopicQueueNums", "1,000", ErrValue, `"1,000" is not a whole number (queues, 1 to 65535); write 1000`},
		{"autoCreateTopicEnable", "1", ErrValue, "true or false"},
		{"channelExpiredTimeout", "2m", ErrValue, `"2m" is not a whole number (ms, 1000 to 3153600000000); write 120000`},
		{"brokerPermission", "9", ErrValue, "9 is over the limit 7 (a number, 0 to 7)"},
		{"brokerPermission", "2", nil, ""},
		{"brokerPermission", "7", nil, ""},
		{"brokerName", "", ErrValue, "it is empty"},
		{"brokerName", "two words", ErrValue, `"two words" has ' '; a name has letters`},
		{"brokerName", `"b"`, ErrValue, `"b": the quotes are a part of the value; write brokerName=b`},
		{"brokerName", "b # the first", ErrValue, "write brokerName=b"},
		{"brokerName", strings.Repeat("b", 128), ErrValue, "it has 128 bytes, the limit is 127"},
		{"msgTraceTopicName", "a.b", ErrValue, `has '.', which no topic`}, {"msgTraceTopicName", "a@b", ErrValue, `has '@', which no topic`},
		{"namesrvAddr", "foo", ErrValue, `"foo" is not HOST:PORT, such as 127.0.0.1:9876`},
		{"namesrvAddr", "", nil, ""},
		{"regionId", "a\x01b", ErrValue, "not to be seen"},
		{"autoCreateTopicEnable", "maybe", ErrValue, "true or false"},
		{"defaultMessageRequestMode", "PUSH", ErrValue, "PULL,POP"},
		{"autocreatetopicenable", "true", ErrUnknown, "did you mean autoCreateTopicEnable"},
		{"fileReserveTime", "1", ErrUnknown, `unknown setting "fileReserveTime"`}, // is a store's
		{"brokerNme", "b", ErrUnknown, "did you mean brokerName?"},
		{"noSuchThing", "1", ErrUnknown, "noSuchThing"},
	} {
		err := Set(&b, c.name, c.value)
		if !errors.Is(err, c.err) || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
	if b.AutoCreateTopicEnable || b.DefaultTopicQueueNums != 4 || b.BrokerName != "b1" {
		t.Errorf("%+v", b)
	}
}

func TestApplyReachesEveryStruct(t *testing.T) {
	s, p := DefaultStore(), DefaultProxy()
	if err := Apply(map[string]string{"maxMessageSize": "65536", "flushDiskType": "SYNC_FLUSH"}, &s, &p); err != nil {
		t.Fatal(err)
	}
	if s.MaxMessageSize != 65536 || p.MaxMessageSize != 65536 || s.FlushDiskType != "SYNC_FLUSH" {
		t.Errorf("%+v %+v", s, p)
	}
	if err := Apply(map[string]string{"x": "1"}, &s, &p); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestWithoutEffect(t *testing.T) {
	s, b := DefaultStore(), DefaultBroker()
	got := WithoutEffect(map[string]string{
		"timerPrecisionMs":    "500",   // nothing looks at it
		"messageIndexEnable":  "TRUE",  // the same, but it is the default
		"fileReservedTime":    "48",    // has an effect
		"recallMessageEnablE": "false", // unknown, which is another's to say
	}, &s, &b)
	if len(got) != 1 || got[0].Name != "timerPrecisionMs" || !strings.Contains(got[0].Why, "millisecond") {
		t.Errorf("%+v", got)
	}
}

func TestChangeIsAllOrNothing(t *testing.T) {
	l := NewLive(DefaultBroker())
	before := l.Get()
	err := l.Change(map[string]string{"defaultTopicQueueNums": "4", "traceOn": "perhaps"})
	if !errors.Is(err, ErrValue) || l.Get() != before {
		t.Errorf("%v", err)
	}
	if err := l.Change(map[string]string{"brokerName": "x"}); !errors.Is(err, ErrFixed) {
		t.Errorf("%v", err)
	}
	s := DefaultStore()
	s.MappedFileSizeCommitLog = 8 << 20
	if store := NewLive(s); !errors.Is(store.Change(map[string]string{"maxMessageSize": "8388608"}), ErrValue) || store.Change(map[string]string{"maxMessageSize": "8000000"}) != nil {
		t.Error("a message that fits into no log file, or one that does")
	}
	if err := l.Change(map[string]string{"defaultTopicQueueNums": "4"}); err != nil || l.Get().DefaultTopicQueueNums != 4 || before.DefaultTopicQueueNums != 8 {
		t.Errorf("%v", err)
	}
}

// Every default is a legal value, and says so in the form that sets it again.
func TestListSetsAgain(t *testing.T) {
	b, s, n, p := DefaultBroker(), DefaultStore(), DefaultNamesrv(), DefaultProxy()
	for _, target := range []any{&b, &s, &n, &p} {
		all := List(target)
		if len(all) == 0 {
			t.Errorf("%T has no properties", target)
		}
		for _, property := range all {
			if err := Set(target, property.Name, property.Value); err != nil {
				t.Errorf("%T: %v", target, err)
			}
		}
	}
}
