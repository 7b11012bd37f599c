package names

import (
	"errors"
	"fmt"
	"strings"
)

// Limits on the length of names, in bytes.
const (
	MaxTopic      = 127
	MaxRetryTopic = 255 // retry and dead-letter topics hold a group's name besides
	MaxGroup      = 120
)

// ErrIllegal is what every refused name wraps.
var ErrIllegal = errors.New("illegal name")

// CheckTopic reports why topic is not a legal name for a topic that a client names.
func CheckTopic(topic string) error {
	limit := MaxTopic
	if IsRetry(topic) || IsDeadLetter(topic) {
		limit = MaxRetryTopic
	}
	return check("topic", topic, limit)
}

// CheckGroup reports why group is not a legal name for a group.
func CheckGroup(group string) error { return check("group", group, MaxGroup) }

// MaxLite is the most bytes that a lite topic's name may have.
const MaxLite = 64

// CheckLite reports why lite is not a legal name for a lite topic.
func CheckLite(lite string) error {
	switch {
	case strings.TrimSpace(lite) == "":
		return fmt.Errorf("%w: the lite topic is blank", ErrIllegal)
	case len(lite) > MaxLite:
		return fmt.Errorf("%w: the lite topic has %d bytes, the limit is %d", ErrIllegal, len(lite), MaxLite)
	}
	for i := 0; i < len(lite); i++ {
		if c := lite[i]; !legal[c] || c == '%' || c == '|' {
			return fmt.Errorf("%w: the lite topic %.200q may hold only letters, digits, - and _", ErrIllegal, lite)
		}
	}
	return nil
}

// MaxLight is the most bytes that a light queue's name may have: it can be a folder's.
const MaxLight = 255

// CheckLight reports why queue is not a legal name for a light queue.
func CheckLight(queue string) error {
	rest, ok := strings.CutPrefix(queue, LightPrefix)
	switch {
	case !ok || rest == "":
		return fmt.Errorf("%w: the light queue %.200q does not begin with %s and a name", ErrIllegal, queue, LightPrefix)
	case len(queue) > MaxLight:
		return fmt.Errorf("%w: the light queue has %d bytes, the limit is %d", ErrIllegal, len(queue), MaxLight)
	}
	for i := 0; i < len(queue); i++ {
		if c := queue[i]; c < ' ' || c == 0x7f || c == '/' || c == '\\' || c == ',' {
			return fmt.Errorf("%w: the light queue %.200q may hold no slash, comma or control character", ErrIllegal, queue)
		}
	}
	if IsLite(queue) {
		if _, _, whole := OfLite(queue); !whole {
			return fmt.Errorf("%w: the light queue %.200q is that of a lite topic and has not its form %s", ErrIllegal, queue, Lite("parent", "lite"))
		}
	}
	return nil
}

// MayHaveLights reports whether messages of a topic get into further queues: not those of
// retry, dead-letter and the server's own topics, whose messages have done so before.
func MayHaveLights(topic string) bool {
	return !IsRetry(topic) && !IsDeadLetter(topic) && !strings.HasPrefix(topic, SystemTopicPrefix) && topic != Schedule
}

func check(what, name string, limit int) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: the %s is blank", ErrIllegal, what)
	}
	if len(name) > limit {
		return fmt.Errorf("%w: the %s has %d bytes, the limit is %d", ErrIllegal, what, len(name), limit)
	}
	for i := 0; i < len(name); i++ {
		if !legal[name[i]] {
			return fmt.Errorf("%w: the %s %.200q may hold only %%, |, -, _, letters and digits", ErrIllegal, what, name)
		}
	}
	return nil
}

var legal = func() (set [256]bool) {
	for c := range 256 {
		b := byte(c)
		set[c] = b == '%' || b == '|' || b == '-' || b == '_' ||
			(b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
	}
	return set
}()
