package state

import (
	"encoding/binary"
	"testing"
)

// A value is read to its end and not beyond: cut anywhere it is short, and longer it is not whole.
func TestReadValue(t *testing.T) {
	b := binary.AppendUvarint(nil, 300)
	b = binary.AppendVarint(b, -70_000)
	b = append(b, "abc"...)
	read := func(b []byte) (uint64, int64, string, ValueReader) {
		in := ReadValue(b)
		u, v := in.Uvarint(), in.Varint()
		return u, v, string(in.Bytes(3)), in
	}
	if u, v, s, in := read(b); u != 300 || v != -70_000 || s != "abc" || !in.Whole() || in.Short() {
		t.Errorf("%d %d %q, %+v", u, v, s, in)
	}
	for n := range b {
		if _, _, _, in := read(b[:n]); in.Whole() || !in.Short() {
			t.Errorf("%d of %d bytes are enough", n, len(b))
		}
	}
	if _, _, _, in := read(append(b, 0)); in.Whole() || in.Short() {
		t.Error("a byte too many goes unnoticed")
	}
	if in := ReadValue(b); in.Bytes(1<<63) != nil || in.Uvarint() != 0 || !in.Short() {
		t.Error("more bytes than there are")
	}
}
