// Package receipt is the text form of one delivery: POP_CK of Remoting, the receipt
// handle of gRPC, and the offset fields of a POP answer.
//
// Invariants: Parse∘Append is the identity; no input panics. Neighbours: pop names
// deliveries with it, fronts and clients carry it.
package receipt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// ErrIllegal is what a text that is no receipt gets.
var ErrIllegal = errors.New("illegal receipt handle")

// Which topic a delivery was read from.
const (
	FlagNormal  byte = 0 // the topic itself
	FlagRetryV1 byte = 1 // its retry topic under the older name
	FlagRetryV2 byte = 2 // its retry topic under the newer name
)

// NoLogOffset is Handle.LogOffset where the text has eight fields only.
const NoLogOffset = -1

// Handle names one delivery of one message.
type Handle struct {
	StartOffset   int64 // first offset of the batch that it was delivered in
	PopTime       int64
	InvisibleTime int64
	ReviveQueue   int32 // names.OrderedReviveQueue for ordered deliveries
	RetryFlag     byte
	Broker        string
	QueueID       int32
	Offset        int64
	LogOffset     int64 // NoLogOffset when absent
	// Lite is the lite topic that it was read from. In the text it is a tenth field, for clients
	// of gRPC: those of Remoting make their own text, and say the lite topic beside.
	Lite string
}

// Parse reads eight to ten fields separated by one space.
func Parse(text string) (Handle, error) {
	h := Handle{LogOffset: NoLogOffset}
	fields := splitter{rest: text}
	var err error
	number := func(name string, bits int) int64 {
		field, ok := fields.next()
		if err != nil {
			return 0
		}
		if !ok {
			err = fmt.Errorf("%w: it ends before %s", ErrIllegal, name)
			return 0
		}
		v, bad := strconv.ParseInt(field, 10, bits)
		if bad != nil {
			err = fmt.Errorf("%w: %s is %.32q, not a number of %d bits", ErrIllegal, name, field, bits)
		}
		return v
	}
	h.StartOffset = number("the start offset", 64)
	h.PopTime = number("the pop time", 64)
	h.InvisibleTime = number("the invisible time", 64)
	h.ReviveQueue = int32(number("the revive queue", 32))
	flag := number("the retry flag", 8)
	if err == nil && (flag < 0 || flag > int64(FlagRetryV2)) {
		err = fmt.Errorf("%w: the retry flag is %d, not 0, 1 or 2", ErrIllegal, flag)
	}
	h.RetryFlag = byte(flag)
	h.Broker, _ = fields.next()
	h.QueueID = int32(number("the queue", 32))
	h.Offset = number("the offset", 64)
	if fields.more() {
		h.LogOffset = number("the log offset", 64)
	}
	if err == nil && fields.more() {
		if h.Lite, _ = fields.next(); names.CheckLite(h.Lite) != nil {
			err = fmt.Errorf("%w: the tenth field is %.80q, no lite topic", ErrIllegal, h.Lite)
		}
	}
	if err == nil && fields.more() {
		err = fmt.Errorf("%w: it has more than ten fields", ErrIllegal)
	}
	if err != nil {
		return Handle{}, err
	}
	return h, nil
}

// AppendTo appends the text of h: nine fields, eight without a log offset, ten with a lite topic.
func (h Handle) AppendTo(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, h.StartOffset, 10), ' ')
	dst = append(strconv.AppendInt(dst, h.PopTime, 10), ' ')
	dst = append(strconv.AppendInt(dst, h.InvisibleTime, 10), ' ')
	dst = append(strconv.AppendInt(dst, int64(h.ReviveQueue), 10), ' ')
	dst = append(strconv.AppendInt(dst, int64(h.RetryFlag), 10), ' ')
	dst = append(append(dst, h.Broker...), ' ')
	dst = append(strconv.AppendInt(dst, int64(h.QueueID), 10), ' ')
	dst = strconv.AppendInt(dst, h.Offset, 10)
	if h.LogOffset != NoLogOffset || h.Lite != "" {
		dst = strconv.AppendInt(append(dst, ' '), h.LogOffset, 10)
	}
	if h.Lite != "" {
		dst = append(append(dst, ' '), h.Lite...)
	}
	return dst
}

// String is the text of h.
func (h Handle) String() string { return string(h.AppendTo(make([]byte, 0, 128))) }

// RealTopic is the topic that the delivery was read from: topic itself, group's retry topic
// of it, or the queue of a lite topic.
func (h Handle) RealTopic(topic, group string) string {
	if h.Lite != "" {
		return names.Lite(topic, h.Lite)
	}
	return RealTopic(h.RetryFlag, topic, group)
}

// RealTopic is the topic that retryFlag stands for.
func RealTopic(retryFlag byte, topic, group string) string {
	switch retryFlag {
	case FlagRetryV1:
		return names.PopRetryV1(topic, group)
	case FlagRetryV2:
		return names.PopRetryV2(topic, group)
	}
	return topic
}

// Ordered reports whether the delivery is of an ordered topic.
func (h Handle) Ordered() bool { return h.ReviveQueue == names.OrderedReviveQueue }

// Due is the time from which on the message is visible again.
func (h Handle) Due() int64 { return h.PopTime + h.InvisibleTime }

// splitter yields fields between single spaces.
type splitter struct {
	rest string
	done bool
}

func (s *splitter) next() (string, bool) {
	if s.done {
		return "", false
	}
	field, rest, found := strings.Cut(s.rest, " ")
	s.rest, s.done = rest, !found
	return field, true
}

func (s *splitter) more() bool { return !s.done }
