package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrAttribute is what every refused change of a topic's or group's attributes wraps.
// Its text is the rest of the sentence, in the form that tools of Apache RocketMQ show.
var ErrAttribute = errors.New("attribute")

// Attribute is the rule of one attribute of a topic or a group.
type Attribute struct {
	Name      string
	Fixed     bool     // set at creation only
	Values    []string // allowed values; nil = see Min and Max, or any text
	Number    bool     // a whole number of Min to Max
	Min, Max  int64
	AnyString bool
}

// TopicAttributes are the attributes that a topic can have.
var TopicAttributes = []Attribute{
	{Name: "queue.type", Fixed: true, Values: []string{"BatchCQ", "SimpleCQ"}},
	{Name: "cleanup.policy", Fixed: true, Values: []string{"DELETE", "COMPACTION"}},
	{Name: "message.type", Values: []string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED"}},
	{Name: "reserve.time", Number: true, Min: -1, Max: math.MaxInt64},
	{Name: "lite.topic.expiration", Number: true, Min: -1, Max: 43200},
}

// GroupAttributes are the attributes that a subscription group can have.
var GroupAttributes = []Attribute{
	{Name: "priority.factor", Number: true, Min: 0, Max: 100},
	{Name: "lite.bind.topic", AnyString: true},
	{Name: "lite.sub.model", Values: []string{"Shared", "Exclusive"}},
	{Name: "lite.sub.reset.offset.exclusive", Values: []string{"true", "false"}},
	{Name: "lite.sub.reset.offset.unsubscribe", Values: []string{"true", "false"}},
	{Name: "lite.sub.client.quota", Number: true, Min: -1, Max: math.MaxInt64},
	{Name: "lite.sub.client.max.event.cnt", Number: true, Min: 10, Max: math.MaxInt64},
	{Name: "lite.sub.wildcard", AnyString: true},
}

type attributeError struct{ text string }

func (e *attributeError) Error() string { return e.text }
func (e *attributeError) Unwrap() error { return ErrAttribute }

func attributeErrorf(format string, args ...any) error {
	return &attributeError{fmt.Sprintf(format, args...)}
}

// AlterAttributes applies a change ("+name" → value, "-name" → anything) to the current
// attributes and returns the new set; current is not touched. While something is created
// only additions are allowed. All of the change is checked before any of it counts.
func AlterAttributes(create bool, rules []Attribute, current, change map[string]string) (map[string]string, error) {
	next := make(map[string]string, len(current)+len(change))
	for k, v := range current {
		next[k] = v
	}
	signed := make([]string, 0, len(change))
	for key := range change {
		signed = append(signed, key)
	}
	slices.Sort(signed) // the same change always names the same first mistake
	seen := make(map[string]bool, len(change))
	for _, key := range signed {
		if len(key) < 2 || strings.ContainsAny(key[1:], "+-") {
			return nil, attributeErrorf("kv string format wrong.")
		}
		sign, name, value := key[0], key[1:], change[key]
		if seen[name] {
			return nil, attributeErrorf("alter duplication key. key: %s", name)
		}
		seen[name] = true
		if err := checkSign(create, sign, name, current); err != nil {
			return nil, err
		}
		_, had := current[name]
		if err := checkAttribute(rules, name, value, create, sign == '-'); err != nil {
			return nil, err
		}
		if sign == '-' && had {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	return next, nil
}

func checkSign(create bool, sign byte, name string, current map[string]string) error {
	switch {
	case create && sign != '+':
		return attributeErrorf("only add attribute is supported while creating topic. key: %s", name)
	case sign == '-':
		if _, ok := current[name]; !ok {
			return attributeErrorf("attempt to delete a nonexistent key: %s", name)
		}
	case sign != '+':
		return attributeErrorf("wrong format key: %s", name)
	}
	return nil
}

func checkAttribute(rules []Attribute, name, value string, create, remove bool) error {
	i := slices.IndexFunc(rules, func(a Attribute) bool { return a.Name == name })
	if i < 0 {
		return attributeErrorf("unsupported key: %s", name)
	}
	rule := rules[i]
	if !create && rule.Fixed {
		return attributeErrorf("attempt to update an unchangeable attribute. key: %s", name)
	}
	if remove || rule.AnyString {
		return nil
	}
	if rule.Number {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return attributeErrorf("value of %s is not a whole number: %q", name, value)
		}
		if n < rule.Min || n > rule.Max {
			return attributeErrorf("value is not in range(%d, %d)", rule.Min, rule.Max)
		}
		return nil
	}
	if !slices.Contains(rule.Values, value) {
		return attributeErrorf("value is not in set: [%s]", strings.Join(rule.Values, ", "))
	}
	return nil
}

// ParseAttributes reads the text form of a change, "+a=b,-c": the form of the header of
// request 17 and of the tools.
func ParseAttributes(text string) (map[string]string, error) {
	change := make(map[string]string)
	if strings.TrimSpace(text) == "" {
		return change, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, assigned := strings.Cut(part, "=")
		switch {
		case assigned && strings.HasPrefix(key, "+") && !strings.Contains(value, "="):
		case !assigned && strings.HasPrefix(key, "-"):
		default:
			return nil, attributeErrorf("add/alter attribute format is wrong: %s", part)
		}
		if _, twice := change[key]; twice {
			return nil, attributeErrorf("key duplication: %s", key)
		}
		change[key] = value
	}
	return change, nil
}
