package message

import (
	"encoding/binary"
	"fmt"
	"math"
)

// batchFixed is what each message of a batch takes beside its body and properties.
const batchFixed = 4 + 4 + 4 + 4 + 4 + 2

// DecodeBatch calls each for every message in the body of a batch send (code 320). The
// Message has flag, properties and body, aliasing body, and is overwritten by the next
// call. It stops at the first error of each.
func DecodeBatch(body []byte, each func(*Message) error) error {
	be := binary.BigEndian
	var m Message
	for index := 0; len(body) > 0; index++ {
		if len(body) < batchFixed {
			return fmt.Errorf("%w: message %d of the batch has %d bytes left, at least %d are needed", ErrTorn, index, len(body), batchFixed)
		}
		size := int64(int32(be.Uint32(body)))
		one, rest, ok := cut(body, size)
		if !ok || size < batchFixed {
			return fmt.Errorf("%w: message %d of the batch says that it has %d bytes, %d are left", ErrCorrupt, index, size, len(body))
		}
		flag := int32(be.Uint32(one[12:]))
		payload, tail, ok := cut(one[20:], int64(int32(be.Uint32(one[16:]))))
		if !ok || len(tail) < 2 {
			return fmt.Errorf("%w: the body of message %d of the batch is longer than the message", ErrCorrupt, index)
		}
		properties, tail, ok := cut(tail[2:], int64(int16(be.Uint16(tail))))
		if !ok || len(tail) != 0 {
			return fmt.Errorf("%w: the properties of message %d of the batch do not end where it ends", ErrCorrupt, index)
		}
		m = Message{Flag: flag, Properties: Properties(aliased(properties)), Body: payload}
		if err := each(&m); err != nil {
			return err
		}
		body = rest
	}
	return nil
}

// AppendBatch appends m as one message of a batch send.
func AppendBatch(dst []byte, m *Message) ([]byte, error) {
	if len(m.Properties) > MaxProperties {
		return dst, fmt.Errorf("%w: the properties have %d bytes, the limit is %d", ErrPropertiesTooLarge, len(m.Properties), MaxProperties)
	}
	size := batchFixed + len(m.Body) + len(m.Properties)
	if size > math.MaxInt32 {
		return dst, fmt.Errorf("%w: the message has %d bytes, the limit is %d", ErrBodyTooLarge, size, math.MaxInt32)
	}
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(size))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0) // magic and checksum, which the server makes
	dst = be.AppendUint32(dst, uint32(m.Flag))
	dst = be.AppendUint32(dst, uint32(len(m.Body)))
	dst = append(dst, m.Body...)
	dst = be.AppendUint16(dst, uint16(len(m.Properties)))
	return append(dst, m.Properties...), nil
}
