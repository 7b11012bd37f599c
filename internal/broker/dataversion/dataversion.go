// Package dataversion is what tells apart two states of a table: how a version follows
// another, and how it is stored.
//
// Invariants: the version after a change differs from all before it, and its time does not
// go back; the stored form is that of docs/formats/state.md.
//
// Neighbours: topic and group keep one each.
package dataversion

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Next is the version after v.
func Next(v remoting.DataVersion) remoting.DataVersion {
	v.Counter++
	v.Timestamp = max(time.Now().UnixMilli(), v.Timestamp)
	return v
}

const size = 24

// Encode is v in its stored form.
func Encode(v remoting.DataVersion) []byte {
	b := make([]byte, 0, size)
	for _, n := range []int64{v.StateVersion, v.Timestamp, v.Counter} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// Decode reads the stored form.
func Decode(b []byte) (remoting.DataVersion, error) {
	if len(b) != size {
		return remoting.DataVersion{}, fmt.Errorf("stored data version has %d bytes, not %d", len(b), size)
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	return remoting.DataVersion{StateVersion: number(0), Timestamp: number(8), Counter: number(16)}, nil
}
