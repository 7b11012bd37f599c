package message

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RecallHandle names a timer, for the one who wants it back: what a send answers with and a
// recall gives. Its text is Apache RocketMQ's first version.
type RecallHandle struct {
	Topic, Broker string
	Due           int64 // when the message is due, in milliseconds since 1970
	UniqKey       string
}

// ErrRecallHandle says that a text is no recall handle.
var ErrRecallHandle = errors.New("the recall handle is malformed")

const recallVersion = "v1"

// String is the handle's text.
func (h RecallHandle) String() string {
	var digits [20]byte
	raw := make([]byte, 0, len(recallVersion)+len(h.Topic)+len(h.Broker)+len(h.UniqKey)+len(digits)+4)
	raw = append(raw, recallVersion...)
	for _, field := range []string{h.Topic, h.Broker, string(strconv.AppendInt(digits[:0], h.Due, 10)), h.UniqKey} {
		raw = append(raw, ' ')
		raw = append(raw, field...)
	}
	return base64.URLEncoding.EncodeToString(raw)
}

// ParseRecallHandle reads a handle's text. The unique key is the rest of it: it may hold
// blanks, where a client has made it so.
func ParseRecallHandle(text string) (h RecallHandle, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return h, fmt.Errorf("%w: it is not Base64", ErrRecallHandle)
	}
	fields := strings.SplitN(string(raw), " ", 5)
	if fields[0] != recallVersion || len(fields) < 5 {
		return h, fmt.Errorf("%w: want five fields that begin with %s", ErrRecallHandle, recallVersion)
	}
	h = RecallHandle{Topic: fields[1], Broker: fields[2], UniqKey: fields[4]}
	if h.Due, err = strconv.ParseInt(fields[3], 10, 64); err != nil || h.Due <= 0 {
		return h, fmt.Errorf("%w: its time is %q", ErrRecallHandle, fields[3])
	}
	if h.Topic == "" || h.Broker == "" || h.UniqKey == "" {
		return h, fmt.Errorf("%w: a field is empty", ErrRecallHandle)
	}
	return h, nil
}
