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
