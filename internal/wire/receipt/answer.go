package receipt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrIllegalAnswer is what a field of a POP answer that can't be read gets.
var ErrIllegalAnswer = errors.New("illegal field of a POP answer")

// Queue is the key under which the fields of a POP answer file a queue. One answer holds
// a queue at most once.
type Queue struct {
	RetryFlag byte
	QueueID   int32
}

// AppendStartOffset adds a queue's entry to startOffsetInfo: "flag queue start".
func AppendStartOffset(dst []byte, q Queue, start int64) []byte {
	return strconv.AppendInt(appendKey(dst, q), start, 10)
}

// AppendOffsets adds a queue's entry to msgOffsetInfo: "flag queue off,off,…", the
// offsets in the order of the answer.
func AppendOffsets(dst []byte, q Queue, offsets []int64) []byte {
	dst = appendKey(dst, q)
	for i, offset := range offsets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, offset, 10)
	}
	return dst
}

// AppendOrderCount adds how often a queue's messages were delivered before to
// orderCountInfo: "flag queue count".
func AppendOrderCount(dst []byte, q Queue, count int32) []byte {
	return strconv.AppendInt(appendKey(dst, q), int64(count), 10)
}

// AppendOrderCountOf adds the count of one message to orderCountInfo:
// "flag qo<queue>%<offset> count".
func AppendOrderCountOf(dst []byte, q Queue, offset int64, count int32) []byte {
	dst = appendFlag(dst, q.RetryFlag)
	dst = strconv.AppendInt(append(dst, "qo"...), int64(q.QueueID), 10)
	dst = strconv.AppendInt(append(dst, '%'), offset, 10)
	return strconv.AppendInt(append(dst, ' '), int64(count), 10)
}

func appendKey(dst []byte, q Queue) []byte {
	dst = strconv.AppendInt(appendFlag(dst, q.RetryFlag), int64(q.QueueID), 10)
	return append(dst, ' ')
}

func appendFlag(dst []byte, flag byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	return append(strconv.AppendInt(dst, int64(flag), 10), ' ')
}

// ParseStartOffsets reads startOffsetInfo.
func ParseStartOffsets(text string) (map[Queue]int64, error) {
	return parseEntries("startOffsetInfo", text, func(value string) (int64, bool) {
		v, err := strconv.ParseInt(value, 10, 64)
		return v, err == nil
	})
}

// ParseOffsets reads msgOffsetInfo.
func ParseOffsets(text string) (map[Queue][]int64, error) {
	return parseEntries("msgOffsetInfo", text, func(value string) ([]int64, bool) {
		var offsets []int64
		for part := range strings.SplitSeq(value, ",") {
			v, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return nil, false
			}
			offsets = append(offsets, v)
		}
		return offsets, true
	})
}

// OrderCounts is orderCountInfo taken apart.
type OrderCounts struct {
	Queues   map[Queue]int32
	Messages map[OrderedMessage]int32
}

// OrderedMessage is one message of an ordered queue.
type OrderedMessage struct {
	Queue
	Offset int64
}

// ParseOrderCounts reads orderCountInfo.
func ParseOrderCounts(text string) (OrderCounts, error) {
	counts := OrderCounts{Queues: map[Queue]int32{}, Messages: map[OrderedMessage]int32{}}
	err := eachEntry("orderCountInfo", text, func(flag byte, key, value string) bool {
		count, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return false
		}
		queue, offset, perMessage := key, "", false
		if rest, ok := strings.CutPrefix(key, "qo"); ok {
			if queue, offset, perMessage = strings.Cut(rest, "%"); !perMessage {
				return false
			}
		}
		id, err := strconv.ParseInt(queue, 10, 32)
		if err != nil {
			return false
		}
		q := Queue{flag, int32(id)}
		if !perMessage {
			_, twice := counts.Queues[q]
			counts.Queues[q] = int32(count)
			return !twice
		}
		at, err := strconv.ParseInt(offset, 10, 64)
		if err != nil {
			return false
		}
		m := OrderedMessage{q, at}
		_, twice := counts.Messages[m]
		counts.Messages[m] = int32(count)
		return !twice
	})
	return counts, err
}

func parseEntries[V any](field, text string, parse func(value string) (V, bool)) (map[Queue]V, error) {
	entries := map[Queue]V{}
	err := eachEntry(field, text, func(flag byte, key, value string) bool {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return false
		}
		q := Queue{flag, int32(id)}
		v, ok := parse(value)
		_, twice := entries[q]
		entries[q] = v
		return ok && !twice
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// eachEntry yields the three parts of each entry between semicolons.
func eachEntry(field, text string, entry func(flag byte, key, value string) bool) error {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ";") {
		s := splitter{rest: part}
		flag, _ := s.next()
		key, _ := s.next()
		value, ok := s.next()
		f, err := strconv.ParseUint(flag, 10, 8)
		if !ok || s.more() || err != nil || f > uint64(FlagRetryV2) || !entry(byte(f), key, value) {
			return fmt.Errorf("%w: %s has the entry %.64q", ErrIllegalAnswer, field, part)
		}
	}
	return nil
}
