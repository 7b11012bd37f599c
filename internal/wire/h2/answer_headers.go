package h2

import (
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
)

// responseHeaders writes the header blocks of answers. They are always the same few
// fields, so instead of an encoder there is a plan: the first block of a connection puts
// the content type into the peer's table, the first trailer of a good end the status;
// from then on a block is two bytes. It is used in the order in which frames are written,
// under the connection's lock.
type responseHeaders struct {
	content, status bool // is in the peer's table
	plain           bool // the peer has made its table smaller: it is not used any more
	shrink          bool // say so in the next block
}

// Bytes of HPACK (RFC 7541, section 6 and appendix A).
const (
	indexed         = 0x80 // + the field's index
	indexStatus200  = 0x88 // :status: 200
	literalIndexed  = 0x40 // + name's index; goes into the table
	literalPlain    = 0x00 // + name's index of four bits
	nameContentType = 31
	nameStatus      = 8
	firstDynamic    = 62
	tableSizeZero   = 0x20
)

const contentType = "application/grpc"

// tableShrunk is told when the peer lowers the size of its table.
func (h *responseHeaders) tableShrunk() { h.plain, h.shrink = true, true }

func (h *responseHeaders) begin(b []byte) []byte {
	if h.shrink {
		h.shrink = false
		b = append(b, tableSizeZero)
	}
	return b
}

// open is the block that begins an answer.
func (h *responseHeaders) open(b []byte) []byte {
	b = append(h.begin(b), indexStatus200)
	switch {
	case h.plain:
		return appendLiteral(b, nameContentType, "", contentType)
	case !h.content:
		h.content = true
		b = append(b, literalIndexed|nameContentType)
		return appendText(b, contentType)
	case h.status:
		return append(b, indexed+firstDynamic+1) // the status came after it
	default:
		return append(b, indexed+firstDynamic)
	}
}

// good is the trailer of an answer that is complete.
func (h *responseHeaders) good(b []byte) []byte {
	b = h.begin(b)
	switch {
	case h.plain || !h.content:
		return appendLiteral(b, 0, "grpc-status", "0")
	case !h.status:
		h.status = true
		b = append(b, literalIndexed)
		b = appendText(b, "grpc-status")
		return appendText(b, "0")
	default:
		return append(b, indexed+firstDynamic)
	}
}

// failed is the trailer of a call that failed; alone says that nothing came before it.
func (h *responseHeaders) failed(b []byte, alone bool, code codes.Code, text string) []byte {
	b = h.begin(b)
	if alone {
		b = append(b, indexStatus200)
		b = appendLiteral(b, nameContentType, "", contentType)
	}
	b = appendLiteral(b, 0, "grpc-status", strconv.Itoa(int(code)))
	if text != "" {
		b = appendLiteral(b, 0, "grpc-message", percentEncode(text))
	}
	return b
}

// httpStatus is the answer to what is no gRPC call.
func (h *responseHeaders) httpStatus(b []byte, status int) []byte {
	return appendLiteral(h.begin(b), nameStatus, "", strconv.Itoa(status))
}

// appendLiteral appends a field that goes into no table; its name is an index of the
// static table, or a text.
func appendLiteral(b []byte, index int, name, value string) []byte {
	if index < 15 {
		b = append(b, literalPlain|byte(index))
	} else {
		b = append(b, literalPlain|15, byte(index-15))
	}
	if index == 0 {
		b = appendText(b, name)
	}
	return appendText(b, value)
}

// appendText appends a string without Huffman coding.
func appendText(b []byte, s string) []byte {
	n := len(s)
	if n < 127 {
		b = append(b, byte(n))
	} else {
		b = append(b, 127)
		for n -= 127; n >= 128; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		b = append(b, byte(n))
	}
	return append(b, s...)
}

// maxStatusText is how much of a failure's text is sent.
const maxStatusText = 4 << 10

// percentEncode encodes a grpc-message: bytes that are no printable ASCII, and %.
func percentEncode(s string) string {
	if len(s) > maxStatusText {
		s = s[:maxStatusText]
	}
	clean := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '%' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
