package publish

import (
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/config"
)

// Levels are the delays of levels 1, 2, …; level n has its messages in queue n−1 of the
// schedule topic.
type Levels []time.Duration

// DefaultLevels are the 18 levels of Apache RocketMQ.
func DefaultLevels() Levels {
	l, err := ParseLevels("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
	if err != nil {
		panic(err)
	}
	return l
}

// ParseLevels reads the text of messageDelayLevel.
func ParseLevels(text string) (Levels, error) {
	delays, err := config.Delays(text)
	if err != nil {
		return nil, fmt.Errorf("messageDelayLevel: %w", err)
	}
	return delays, nil
}

// Clamp is the level that a message with this level really has.
func (l Levels) Clamp(level int32) int32 { return min(level, int32(len(l))) }

// Delay of a level, which may be above the highest.
func (l Levels) Delay(level int32) time.Duration {
	if level <= 0 {
		return 0
	}
	return l[l.Clamp(level)-1]
}
