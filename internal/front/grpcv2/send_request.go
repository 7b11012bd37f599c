package grpcv2

import (
	"errors"
	"unicode/utf8"
	"unsafe"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// sentMessage is one message of a SendMessageRequest, as far as the server reads it. Its
// strings and its body alias the request's buffer.
type sentMessage struct {
	namespace, topic string
	properties       []property
	tag              string
	keys             []string
	id               string
	encoding         v2.Encoding
	kind             v2.MessageType
	born             timestamp
	bornHost         string
	deliver          timestamp
	attempt          int32
	group            string
	traceContext     string
	recoverAfter     int64 // seconds
	liteTopic        string
	priority         int32
	body             []byte
	hasBorn          bool
	hasDeliver       bool
	hasRecoverAfter  bool
	hasPriority      bool
}

type property struct{ name, value string }

// timestamp is google.protobuf.Timestamp.
type timestamp struct {
	seconds int64
	nanos   int32
}

func (t timestamp) valid() bool {
	return t.seconds >= -62135596800 && t.seconds <= 253402300799 && t.nanos >= 0 && t.nanos < 1e9
}

func (t timestamp) milli() int64 { return t.seconds*1000 + int64(t.nanos)/1e6 }

// milliUp is the first millisecond that is not before t.
func (t timestamp) milliUp() int64 { return t.seconds*1000 + (int64(t.nanos)+1e6-1)/1e6 }

func (m *sentMessage) reset() {
	*m = sentMessage{properties: m.properties[:0], keys: m.keys[:0]}
}

// What is kept of one request while it is read: an empty message, key or property is two
// bytes on the wire and many times that in memory. What is over the most is not read, and
// the request is refused.
const (
	maxMessages = 10_000
	maxElements = 1 << 20               // keys and user properties of all messages
	maxKeys     = message.MaxProperties // of one message: with their separators they fill it

	maxProperties = 512 // of one message; the setting userPropertyMaxNum can't be higher
)

var errText = errors.New("a string is not UTF-8")

// read reads a SendMessageRequest, which must stay what it is for as long as r is used.
func (r *sendCall) read(b []byte) error {
	r.messages, r.tooMany = r.messages[:0], false
	elements := 0
	return eachPart(b, func(num protowire.Number, v []byte) error {
		if num != 1 || r.tooMany {
			return nil
		}
		n := len(r.messages)
		if r.tooMany = n == maxMessages || elements > maxElements; r.tooMany {
			return nil
		}
		if n < cap(r.messages) {
			r.messages = r.messages[:n+1]
		} else {
			r.messages = append(r.messages, sentMessage{})
		}
		r.messages[n].reset()
		err := r.messages[n].read(v)
		elements += len(r.messages[n].keys) + len(r.messages[n].properties)
		return err
	})
}

func (m *sentMessage) read(b []byte) error {
	return eachPart(b, func(num protowire.Number, v []byte) (err error) {
		switch num {
		case 1:
			var namespace string
			if namespace, m.topic, err = readResource(v, m.topic); namespace != "" {
				m.namespace = namespace
			}
		case 2:
			err = m.readProperty(v)
		case 3:
			err = m.readSystem(v)
		case 4:
			m.body = v
		}
		return err
	})
}

// readResource reads a Resource into what was read of it before: parts of one message are
// merged.
func readResource(b []byte, before string) (namespace, name string, err error) {
	name = before
	err = eachPart(b, func(num protowire.Number, v []byte) (err error) {
		switch num {
		case 1:
			namespace, err = text(v)
		case 2:
			name, err = text(v)
		}
		return err
	})
	return namespace, name, err
}

func (m *sentMessage) readProperty(b []byte) error {
	var p property
	err := eachPart(b, func(num protowire.Number, v []byte) (err error) {
		switch num {
		case 1:
			p.name, err = text(v)
		case 2:
			p.value, err = text(v)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(m.properties) > maxProperties {
		return nil // refused anyway: no need to keep more, or to look further at quadratic cost
	}
	for i := range m.properties {
		if m.properties[i].name == p.name {
			m.properties[i].value = p.value
			return nil
		}
	}
	m.properties = append(m.properties, p)
	return nil
}

func (m *sentMessage) readSystem(b []byte) error {
	return eachField(b, func(num protowire.Number, v []byte, n uint64) error {
		if v != nil {
			return m.readSystemBytes(num, v)
		}
		m.readSystemNumber(num, n)
		return nil
	})
}

func (m *sentMessage) readSystemNumber(num protowire.Number, n uint64) {
	switch num {
	case 5:
		m.encoding = v2.Encoding(int32(n))
	case 6:
		m.kind = v2.MessageType(int32(n))
	case 16:
		m.attempt = int32(n)
	case 22:
		m.priority, m.hasPriority = int32(n), true
	}
}

func (m *sentMessage) readSystemBytes(num protowire.Number, v []byte) (err error) {
	switch num {
	case 1:
		m.tag, err = text(v)
	case 2:
		var key string
		if key, err = text(v); len(m.keys) <= maxKeys {
			m.keys = append(m.keys, key)
		}
	case 3:
		m.id, err = text(v)
	case 7:
		m.hasBorn = true
		err = m.born.read(v)
	case 8:
		m.bornHost, err = text(v)
	case 11:
		m.hasDeliver = true
		err = m.deliver.read(v)
	case 17:
		m.group, err = text(v)
	case 18:
		m.traceContext, err = text(v)
	case 19:
		var d timestamp
		m.hasRecoverAfter = true
		err = d.read(v)
		m.recoverAfter = d.seconds
	case 21:
		m.liteTopic, err = text(v)
	}
	return err
}

// read reads a Timestamp, or a Duration, whose fields are the same.
func (t *timestamp) read(b []byte) error {
	return eachField(b, func(num protowire.Number, v []byte, n uint64) error {
		switch {
		case v != nil:
		case num == 1:
			t.seconds = int64(n)
		case num == 2:
			t.nanos = int32(n)
		}
		return nil
	})
}

// eachPart calls f for each field of b that has a length: strings, bytes and messages.
func eachPart(b []byte, f func(num protowire.Number, v []byte) error) error {
	return eachField(b, func(num protowire.Number, v []byte, _ uint64) error {
		if v == nil {
			return nil
		}
		return f(num, v)
	})
}

// eachField calls f for each field of b that is a varint (v is nil) or has a length.
func eachField(b []byte, f func(num protowire.Number, v []byte, n uint64) error) error {
	for len(b) > 0 {
		num, v, n, rest, err := nextField(b)
		if err != nil {
			return err
		}
		if err := f(num, v, n); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// nextField reads one field: v is not nil for a field with a length, n is the value of a
// varint. Fields of other wire types come as number 0, which no message uses.
func nextField(b []byte) (num protowire.Number, v []byte, n uint64, rest []byte, err error) {
	num, typ, size := protowire.ConsumeTag(b)
	if size < 0 {
		return 0, nil, 0, nil, protowire.ParseError(size)
	}
	b = b[size:]
	switch typ {
	case protowire.BytesType:
		v, size = protowire.ConsumeBytes(b)
		if size >= 0 && v == nil {
			v = []byte{}
		}
	case protowire.VarintType:
		n, size = protowire.ConsumeVarint(b)
	default:
		size = protowire.ConsumeFieldValue(num, typ, b)
		num = 0
	}
	if size < 0 {
		return 0, nil, 0, nil, protowire.ParseError(size)
	}
	return num, v, n, b[size:], nil
}

// text is b as a string that aliases it.
func text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errText
	}
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}
