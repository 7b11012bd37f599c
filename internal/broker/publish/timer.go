package publish

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// TimerRules are a broker's rules for messages that are to be delivered at a time.
type TimerRules struct {
	Enabled     bool
	MaxDelaySec int64 // how far ahead a time may be
}

// dueOf is when a message that asks for a time is due; 0 for at once: no time, one that has
// passed, or one that has been waited for already. limited says that times beyond the limit
// are refused.
func (p *Publisher) dueOf(m *message.Message, t *traits, limited bool) (due int64, err error) {
	if !t.timer || t.level > 0 || m.Topic == names.WheelTimer || m.Properties.Has(message.PropertyTimerOutMs) {
		return 0, nil
	}
	if limited && m.Properties.Has(message.PropertyTimerDeleteUniqKey) {
		return 0, fmt.Errorf("%w: the property %s is the server's; RECALL_MESSAGE (370) with the handle of its send takes a message back",
			ErrMessageIllegal, message.PropertyTimerDeleteUniqKey)
	}
	rules := p.o.Timers()
	if limited && !rules.Enabled {
		return 0, fmt.Errorf("%w: timerWheelEnable is false", ErrTimersOff)
	}
	due, now, field, err := p.askedTime(m.Properties)
	if err != nil || due <= now {
		return 0, err
	}
	if most := rules.MaxDelaySec; limited && (due-now-1)/1000 >= most {
		return 0, fmt.Errorf("%w: %s = %s is %s ahead, the limit timerMaxDelaySec is %s", ErrTimer,
			field, m.Properties.Value(field), inWords((due-now)/1000), inWords(most))
	}
	if field != message.PropertyTimerDeliverMs {
		due = message.TimerExact(due)
	}
	return due, nil
}

// askedTime is the time that the properties ask for, and the property that does; the first
// of them counts. A time is one of the machine's clock, and a delay takes as long as it says
// even where that is set; now is by the one or the other.
func (p *Publisher) askedTime(of message.Properties) (due, now int64, field string, err error) {
	now = p.o.NowMilli()
	for _, kind := range []struct {
		name string
		unit int64 // of a delay
	}{{message.PropertyTimerDelaySec, 1000}, {message.PropertyTimerDelayMs, 1}, {message.PropertyTimerDeliverMs, 0}} {
		text, ok := of.Get(kind.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			return 0, now, kind.name, fmt.Errorf("%w: %s is %q, want a number", ErrTimer, kind.name, text)
		case kind.unit == 0:
			return n, p.o.WallMilli(), kind.name, nil
		case n > (math.MaxInt64-now-1)/kind.unit:
			return math.MaxInt64 - 1, now, kind.name, nil
		case n <= 0:
			return now, now, kind.name, nil
		}
		return now + n*kind.unit, now, kind.name, nil
	}
	return now, now, "", nil
}

// inWords are seconds as people say them.
func inWords(seconds int64) string {
	const day = 24 * 3600
	if seconds > 0 && seconds%day == 0 {
		return fmt.Sprintf("%d s (%d days)", seconds, seconds/day)
	}
	if seconds > math.MaxInt64/int64(time.Second) {
		return fmt.Sprintf("%d s", seconds)
	}
	return fmt.Sprintf("%d s (%s)", seconds, time.Duration(seconds)*time.Second)
}

// toWheel puts a message that is due later into the timers' topic.
func toWheel(m *message.Message, due int64) {
	m.Properties = m.Properties.WithAll(
		message.PropertyTimerOutMs, strconv.FormatInt(message.TimerOut(due), 10),
		message.PropertyRealTopic, m.Topic,
		message.PropertyRealQueue, itoa(m.QueueID))
	m.Topic, m.QueueID = names.WheelTimer, 0
}
