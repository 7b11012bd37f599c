package h2

import "encoding/binary"

// Frame types, flags, settings and error codes of RFC 9113.
const (
	frameHeader = 9

	typeData         = 0
	typeHeaders      = 1
	typePriority     = 2
	typeReset        = 3
	typeSettings     = 4
	typePushPromise  = 5
	typePing         = 6
	typeGoAway       = 7
	typeWindowUpdate = 8
	typeContinuation = 9

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingHeaderTableSize   = 1
	settingMaxStreams        = 3
	settingInitialWindowSize = 4
	settingMaxFrameSize      = 5
	settingMaxHeaderListSize = 6

	noError           = 0
	protocolError     = 1
	internalError     = 2
	flowControlError  = 3
	streamClosed      = 5
	frameSizeError    = 6
	refusedStream     = 7
	cancelCode        = 8
	compressionError  = 9
	enhanceYourCalm   = 11
	preface           = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	maxWindow         = 1<<31 - 1
	defaultWindow     = 65535
	defaultHeaderSize = 4096
)

// frame is one frame as it was read; payload aliases the read buffer.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

func parseFrame(b []byte) (f frame, size int) {
	size = int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	return frame{kind: b[3], flags: b[4], stream: binary.BigEndian.Uint32(b[5:]) & maxWindow}, size
}

func (f *frame) has(flag byte) bool { return f.flags&flag != 0 }

// unpad removes the padding, and the priority that old clients put into HEADERS.
func (f *frame) unpad() error {
	b := f.payload
	pad := 0
	if f.has(flagPadded) {
		if len(b) == 0 {
			return connError{frameSizeError, "a padded frame without its pad length"}
		}
		pad, b = int(b[0]), b[1:]
	}
	if f.kind == typeHeaders && f.has(flagPriority) {
		if len(b) < 5 {
			return connError{frameSizeError, "HEADERS without its priority"}
		}
		b = b[5:]
	}
	if pad > len(b) {
		return connError{protocolError, "more padding than frame"}
	}
	f.payload = b[:len(b)-pad]
	return nil
}

func appendFrameHeader(b []byte, size int, kind, flags byte, stream uint32) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), kind, flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendWindowUpdate(b []byte, stream uint32, n int) []byte {
	b = appendFrameHeader(b, 4, typeWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendReset(b []byte, stream, code uint32) []byte {
	b = appendFrameHeader(b, 4, typeReset, 0, stream)
	return binary.BigEndian.AppendUint32(b, code)
}

func appendGoAway(b []byte, last, code uint32, text string) []byte {
	b = appendFrameHeader(b, 8+len(text), typeGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, code)
	return append(b, text...)
}

func appendSettings(b []byte, pairs ...uint32) []byte {
	b = appendFrameHeader(b, 3*len(pairs), typeSettings, 0, 0)
	for i := 0; i < len(pairs); i += 2 {
		b = binary.BigEndian.AppendUint16(b, uint16(pairs[i]))
		b = binary.BigEndian.AppendUint32(b, pairs[i+1])
	}
	return b
}

// connError ends a connection: the peer is told with GOAWAY.
type connError struct {
	code uint32
	text string
}

func (e connError) Error() string { return "HTTP/2: " + e.text }

// streamError ends a call: the peer is told with RST_STREAM.
type streamError struct {
	stream uint32
	code   uint32
	text   string
}

func (e streamError) Error() string { return "HTTP/2: " + e.text }
