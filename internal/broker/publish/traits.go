package publish

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// traits is what the rules ask of a message's properties, read in one pass.
type traits struct {
	uniqKey     string
	cluster     string
	region      string
	keys        string
	delay       string
	priority    string
	transaction bool
	ordered     bool // has a message group
	timer       bool // one of the three properties of an arbitrary delivery time
	hasLite     bool
	lite        string // topic
	multi       string // the further queues that the message names
	placed      bool   // holds offsets of further queues, which only the server gives
	lights      []string
	foreign     bool // holds properties that only the server writes
	source      string
	addKey      bool
	half        bool  // the first half of a transaction
	level       int32 // DELAY as a number
	due         int64 // when a timer is due; 0: it is none
	created     bool  // the send created its topic
	dead        *deadLetter
}

func readTraits(p message.Properties) (t traits) {
	for name, value := range p.All() {
		switch name {
		case message.PropertyUniqKey:
			t.uniqKey = value
		case message.PropertyCluster:
			t.cluster = value
		case message.PropertyRegion:
			t.region = value
		case message.PropertyKeys:
			t.keys = value
		case message.PropertyDelay:
			t.delay = value
		case message.PropertyPriority:
			t.priority = value
		case message.PropertyShardingKey:
			t.ordered = true
		case message.PropertyTransaction:
			t.transaction = strings.EqualFold(value, "true")
		case message.PropertyTimerDelayMs, message.PropertyTimerDelaySec, message.PropertyTimerDeliverMs:
			t.timer = true
		case message.PropertyLiteTopic:
			t.hasLite, t.lite = true, value
		case message.PropertyInnerMultiDispatch:
			t.multi = value
		case message.PropertyInnerMultiQueueOffset:
			t.placed = true
		case message.PropertySource:
			t.foreign, t.source = true, value
		case message.PropertyPopCheckpoint, PropertyDeadLetterReason, PropertyDeadLetterAttempts:
			t.foreign = true
		}
	}
	if t.delay != "" {
		n, err := strconv.ParseInt(t.delay, 10, 32)
		if err == nil && n > 0 {
			t.level = int32(n)
		}
	}
	return t
}

// check refuses what this server does not do yet, instead of storing it where nobody
// would ever act on it.
func (t *traits) check(m *message.Message) error {
	if t.delay != "" && t.level == 0 {
		if _, err := strconv.ParseInt(t.delay, 10, 32); err != nil {
			return fmt.Errorf("%w: the property DELAY is %q, want the number of a delay level", ErrMessageIllegal, t.delay)
		}
	}
	if t.priority != "" && !names.IsRetry(m.Topic) { // a retry comes as it was taken
		if n, err := strconv.ParseInt(t.priority, 10, 32); err != nil || n < 0 {
			return fmt.Errorf("%w: the property %s is %q, want a number from 0 to %d", ErrMessageIllegal, message.PropertyPriority, t.priority, math.MaxInt32)
		}
	}
	if err := t.checkHalf(m); err != nil {
		return err
	}
	return nil
}

// prioritise sends a message that has a priority to the queue of that priority: a larger
// number is more urgent and has a higher queue, the highest takes all that are above it. What
// is of another kind besides has no priority, as at Apache RocketMQ: a group's order or a due
// time would not survive it.
func (t *traits) prioritise(m *message.Message, queues int32) {
	if t.priority == "" {
		return
	}
	if t.transaction || t.delay != "" || t.timer || t.ordered || t.hasLite {
		m.Properties = m.Properties.Without(message.PropertyPriority)
		return
	}
	n, _ := strconv.ParseInt(t.priority, 10, 32) // check has read it before
	m.QueueID = min(int32(n), queues-1)
}
