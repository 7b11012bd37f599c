package receipt

import (
	"errors"
	"testing"
)

func TestTransaction(t *testing.T) {
	in := Transaction{QueueOffset: 4711, LogOffset: 1 << 40, Broker: "broker-a.b"}
	if got, err := ParseTransaction(in.String()); err != nil || got != in {
		t.Errorf("%s: %+v, %v", in, got, err)
	}
}

func FuzzTransaction(f *testing.F) {
	for _, s := range []string{"t1.0.0.b", "t1.3mv.zz.broker-a.b", "", "t1.", "t1.1.2", "t1.-1.2.b", "t1.01.2.b", "t1.zzzzzzzzzzzzzzzz.1.b", "01AB", "t1.A.1.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTransaction(s)
		switch {
		case err != nil && !errors.Is(err, ErrIllegal):
			t.Error(err)
		case err == nil && got.String() != s:
			t.Errorf("%q is read as %+v, which is %q", s, got, got)
		}
	})
}
