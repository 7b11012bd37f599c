package publish

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// traits is what the rules ask of a message's properties, read in one pass.
type traits struct {
	uniqKey     string
	cluster     string
	keys        string
	delay       string
	transaction bool
	timer       bool // one of the three properties of an arbitrary delivery time
	lite        bool
	foreign     bool // holds properties that only the server writes
	addKey      bool
	level       int32 // DELAY as a number
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
		case message.PropertyKeys:
			t.keys = value
		case message.PropertyDelay:
			t.delay = value
		case message.PropertyTransaction:
			t.transaction = strings.EqualFold(value, "true")
		case message.PropertyTimerDelayMs, message.PropertyTimerDelaySec, message.PropertyTimerDeliverMs:
			t.timer = true
		case message.PropertyLiteTopic:
			t.lite = true
		case message.PropertyPopCheckpoint, message.PropertySource, PropertyDeadLetterReason, PropertyDeadLetterAttempts:
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
	if (t.transaction || message.TransactionType(m.SysFlag) == message.SysTransactionPrepared) && !(m.ReconsumeTimes > 0 && t.level > 0) {
		return ErrTransaction
	}
	if t.timer && t.level == 0 {
		return ErrTimer
	}
	if t.lite {
		return ErrLite
	}
	return nil
}
