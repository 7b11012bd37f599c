package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxFrame is the longest frame, without its length field, that is read or written.
const MaxFrame = 16 << 20

// LengthSize is the size of the length field before every frame.
const LengthSize = 4

// maxFields is how many ext fields a header may have. Requests have some twenty; without a
// limit a frame of empty ones would be ten times its size in memory.
const maxFields = 1024

var errFields = fmt.Errorf("header has more than %d fields", maxFields)

// minFrame is the header's own length field.
const minFrame = 4

// ErrFrame is what every refusal of a frame's bytes wraps: the connection that sent them
// cannot be understood any more and is closed.
var ErrFrame = errors.New("not a Remoting frame")

// FrameSize returns the length of the frame that follows the length field at the start
// of b, which holds at least LengthSize bytes. Lengths that no frame can have are refused
// before a byte is waited for.
func FrameSize(b []byte) (int, error) {
	n := int32(binary.BigEndian.Uint32(b))
	if n < minFrame || n > MaxFrame {
		return 0, fmt.Errorf("%w: length %d is not between %d and %d", ErrFrame, n, minFrame, MaxFrame)
	}
	return int(n), nil
}

// Parse reads a frame, without its length field, into c. c aliases frame, and frame is
// changed where the header has escapes.
func (c *Command) Parse(frame []byte) error {
	if len(frame) < minFrame {
		return fmt.Errorf("%w: %d bytes", ErrFrame, len(frame))
	}
	word := binary.BigEndian.Uint32(frame)
	size := int(word & 0xFFFFFF)
	if size > len(frame)-minFrame {
		return fmt.Errorf("%w: header of %d bytes in a frame of %d", ErrFrame, size, len(frame))
	}
	header := frame[minFrame : minFrame+size]
	c.Code, c.Language, c.Version, c.Opaque, c.Flag, c.Remark = 0, LanguageJava, 0, 0, 0, ""
	c.Ext.list, c.Ext.there = c.Ext.list[:0], 0
	c.Body = frame[minFrame+size:]
	c.Encoding = Encoding(word >> 24)
	var err error
	switch c.Encoding {
	case JSON:
		err = c.parseJSON(header)
	case Binary:
		err = c.parseBinary(header)
	default:
		err = fmt.Errorf("header encoding %d is unknown", c.Encoding)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}

// AppendRequest appends a whole request frame. opaque is the sender's number for it.
func AppendRequest(dst []byte, code, opaque, flag int32, h Header, body []byte) []byte {
	dst = appendHead(dst, code, opaque, flag, LanguageGo, "", h, len(body))
	return append(dst, body...)
}

// maxRemark is how much of a remark is sent. Remarks name what was asked for, however long
// that is; a header beyond 16 MiB would overflow its length into the encoding.
const maxRemark = 16 << 10

func shortened(remark string) string {
	if len(remark) <= maxRemark {
		return remark
	}
	end := maxRemark
	for end > 0 && !utf8.RuneStart(remark[end]) {
		end--
	}
	return remark[:end]
}

// AppendResponse appends a whole response frame to the request numbered opaque.
func AppendResponse(dst []byte, opaque, code int32, remark string, h Header, body []byte) []byte {
	dst = AppendResponseHead(dst, opaque, code, remark, h, len(body))
	return append(dst, body...)
}

// AppendResponseHead appends a response frame up to its body, of which it promises
// bodySize bytes.
func AppendResponseHead(dst []byte, opaque, code int32, remark string, h Header, bodySize int) []byte {
	return appendHead(dst, code, opaque, FlagResponse, LanguageJava, shortened(remark), h, bodySize)
}

func appendHead(dst []byte, code, opaque, flag int32, language Language, remark string, h Header, bodySize int) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = appendJSONHeader(dst, code, opaque, flag, language, remark, h)
	size := len(dst) - start - LengthSize - minFrame
	binary.BigEndian.PutUint32(dst[start:], uint32(minFrame+size+bodySize))
	binary.BigEndian.PutUint32(dst[start+LengthSize:], uint32(JSON)<<24|uint32(size))
	return dst
}
