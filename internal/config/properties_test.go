package config

import (
	"errors"
	"fmt"
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
		{"autoCreateTopicEnable", "false", nil, ""},
		{"defaultTopicQueueNums", " 4 ", nil, ""},
		{"brokerName", "b1", nil, ""},
		{"defaultTopicQueueNums", "0", ErrValue, "below the limit 1"},
		{"defaultTopicQueueNums", "70000", ErrValue, "over the limit 65535"},
		{"defaultTopicQueueNums", "four", ErrValue, "whole number"},
		{"defaultTopicQueueNums", "99999999999", ErrValue, "whole number"},
		{"autoCreateTopicEnable", "maybe", ErrValue, "true or false"},
		{"defaultMessageRequestMode", "PUSH", ErrValue, "PULL,POP"},
		{"autocreatetopicenable", "true", ErrUnknown, "did you mean autoCreateTopicEnable"},
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
		"recallMessageEnable": "true",  // the same, but it is the default
		"fileReservedTime":    "48",    // has an effect
		"recallMessageEnablE": "false", // unknown, which is another's to say
	}, &s, &b)
	if len(got) != 1 || got[0].Name != "timerPrecisionMs" || !strings.Contains(got[0].Why, "millisecond") {
		t.Errorf("%+v", got)
	}
}

func TestHours(t *testing.T) {
	for text, want := range map[string]string{"04": "[4]", "04;16": "[4 16]", " 4 ; 23;": "[4 23]", "24": "", "": "", "four": "", "-1": ""} {
		got, err := Hours(text)
		if want == "" && !errors.Is(err, ErrValue) || want != "" && (err != nil || fmt.Sprint(got) != want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
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
