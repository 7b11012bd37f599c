package state

import "encoding/binary"

// ValueReader takes a stored value apart and remembers whether it ended early. The zero
// value reads an empty one.
type ValueReader struct {
	rest []byte
	bad  bool
}

// ReadValue reads b, which must not change meanwhile.
func ReadValue(b []byte) ValueReader { return ValueReader{rest: b} }

// Whole reports whether everything was there and nothing is left.
func (in *ValueReader) Whole() bool { return !in.bad && len(in.rest) == 0 }

// Short reports whether the value has ended early; from then on all it gives is zero.
func (in *ValueReader) Short() bool { return in.bad }

// Uvarint is the next number as binary.AppendUvarint writes it.
func (in *ValueReader) Uvarint() uint64 {
	v, n := binary.Uvarint(in.rest)
	if !in.pass(n) {
		return 0
	}
	return v
}

// Varint is the next number as binary.AppendVarint writes it.
func (in *ValueReader) Varint() int64 {
	v, n := binary.Varint(in.rest)
	if !in.pass(n) {
		return 0
	}
	return v
}

// Bytes are the next n bytes, nil where there are fewer.
func (in *ValueReader) Bytes(n uint64) []byte {
	if n > uint64(len(in.rest)) {
		in.bad, in.rest = true, nil
		return nil
	}
	b := in.rest[:n:n]
	in.rest = in.rest[n:]
	return b
}

func (in *ValueReader) pass(n int) bool {
	if n <= 0 {
		in.bad, in.rest = true, nil
		return false
	}
	in.rest = in.rest[n:]
	return true
}
