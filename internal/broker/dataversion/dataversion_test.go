package dataversion

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func TestStoredForm(t *testing.T) {
	v := remoting.DataVersion{StateVersion: 1, Timestamp: -2, Counter: 1 << 40}
	b := Encode(v)
	if got := hex.EncodeToString(b); got != "0000000000000001fffffffffffffffe0000010000000000" {
		t.Errorf("stored as %s", got)
	}
	if got, err := Decode(b); got != v || err != nil {
		t.Errorf("read as %+v, %v", got, err)
	}
	for _, n := range []int{0, 23, 25} {
		if _, err := Decode(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are read", n)
		}
	}
}

func TestNext(t *testing.T) {
	v := remoting.DataVersion{StateVersion: 3, Counter: 7}
	if got := Next(v); got.StateVersion != 3 || got.Counter != 8 || got.Timestamp == 0 {
		t.Errorf("after %+v comes %+v", v, got)
	}
	v.Timestamp = math.MaxInt64 // of a clock that was ahead
	if got := Next(v); got.Timestamp != v.Timestamp || got.Counter != 8 {
		t.Errorf("after %+v comes %+v", v, got)
	}
}
