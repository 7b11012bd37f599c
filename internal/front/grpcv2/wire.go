package grpcv2

import (
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// The functions below append one field, or say how many bytes it takes. A field with the
// zero value is left out, as proto3 does.

func appendString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func stringSize(num protowire.Number, s string) int {
	if s == "" {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeBytes(len(s))
}

func appendVarint(b []byte, num protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, n)
}

func varintSize(num protowire.Number, n uint64) int {
	if n == 0 {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeVarint(n)
}

func statusSize(code v2.Code, text string) int {
	return varintSize(1, uint64(code)) + stringSize(2, text)
}

func statusFieldSize(num protowire.Number, code v2.Code, text string) int {
	return protowire.SizeTag(num) + protowire.SizeBytes(statusSize(code, text))
}

func appendStatusField(b []byte, num protowire.Number, code v2.Code, text string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(statusSize(code, text)))
	b = appendVarint(b, 1, uint64(code))
	return appendString(b, 2, text)
}

// appendTime appends a Timestamp of milliseconds since 1970.
func appendTime(b []byte, num protowire.Number, ms int64) []byte {
	seconds, nanos := ms/1000, ms%1000*1e6
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(varintSize(1, uint64(seconds))+varintSize(2, uint64(nanos))))
	b = appendVarint(b, 1, uint64(seconds))
	return appendVarint(b, 2, uint64(nanos))
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}
