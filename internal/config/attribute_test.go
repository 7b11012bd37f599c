package config

import (
	"errors"
	"maps"
	"testing"
)

func TestAlterAttributes(t *testing.T) {
	type m = map[string]string
	for _, c := range []struct {
		name            string
		create          bool
		current, change m
		want            m
		err             string
	}{
		{name: "nothing", create: true, want: m{}},
		{name: "add at creation", create: true, change: m{"+message.type": "FIFO"}, want: m{"message.type": "FIFO"}},
		{name: "unknown", create: true, change: m{"+foo": "bar"}, err: "unsupported key: foo"},
		{name: "value", create: true, change: m{"+message.type": "XX"}, err: "value is not in set: [UNSPECIFIED, NORMAL, FIFO, DELAY, TRANSACTION, PRIORITY, LITE, MIXED]"},
		{name: "range", create: true, change: m{"+reserve.time": "-2"}, err: "value is not in range(-1, 9223372036854775807)"},
		{name: "no number", create: true, change: m{"+reserve.time": "x"}, err: `value of reserve.time is not a whole number: "x"`},
		{name: "remove at creation", create: true, change: m{"-message.type": ""}, err: "only add attribute is supported while creating topic. key: message.type"},
		{name: "change", current: m{"message.type": "FIFO"}, change: m{"+message.type": "DELAY"}, want: m{"message.type": "DELAY"}},
		{name: "remove", current: m{"message.type": "FIFO"}, change: m{"-message.type": ""}, want: m{}},
		{name: "remove what is not there", change: m{"-message.type": ""}, err: "attempt to delete a nonexistent key: message.type"},
		{name: "fixed", current: m{"queue.type": "SimpleCQ"}, change: m{"+queue.type": "BatchCQ"}, err: "attempt to update an unchangeable attribute. key: queue.type"},
		{name: "no sign", change: m{"message.type": "FIFO"}, err: "wrong format key: essage.type"},
		{name: "two signs", change: m{"++message.type": "FIFO"}, err: "kv string format wrong."},
		{name: "twice", current: m{"message.type": "FIFO"}, change: m{"+message.type": "FIFO", "-message.type": ""}, err: "alter duplication key. key: message.type"},
		{name: "others stay", current: m{"message.type": "FIFO"}, change: m{"+reserve.time": "5"}, want: m{"message.type": "FIFO", "reserve.time": "5"}},
	} {
		before := maps.Clone(c.current)
		got, err := AlterAttributes(c.create, TopicAttributes, c.current, c.change)
		if c.err != "" {
			if err == nil || err.Error() != c.err || !errors.Is(err, ErrAttribute) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
		if !maps.Equal(before, c.current) {
			t.Errorf("%s: the current set was changed", c.name)
		}
	}
}

func TestParseAttributes(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"", ""},
		{"+a=b,-c", ""},
		{"a=b", "add/alter attribute format is wrong: a=b"},
		{"+a", "add/alter attribute format is wrong: +a"},
		{"-a=b", "add/alter attribute format is wrong: -a=b"},
		{"+a=b,+a=c", "key duplication: +a"},
	} {
		_, err := ParseAttributes(c.text)
		if (err == nil) != (c.err == "") || (err != nil && err.Error() != c.err) {
			t.Errorf("ParseAttributes(%q): %v, want %q", c.text, err, c.err)
		}
	}
}
