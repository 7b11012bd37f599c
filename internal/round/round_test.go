package round_test

import (
	"testing"

	"github.com/bolidemq/bolide/internal/round"
)

func TestRounds(t *testing.T) {
	var none *round.Rounds
	none.Wake(func() { t.Error("woken") })
	none.Pause()
	none.Resume()
	if none.Open() {
		t.Error("a round is open where there are none")
	}
	var r round.Rounds
	woken := 0
	r.Wake(func() { woken++ })
	is := func(when string, open bool, wakes int) {
		t.Helper()
		if r.Open() != open || woken != wakes {
			t.Errorf("%s: open %t, woken %d times", when, r.Open(), woken)
		}
	}
	is("at first", false, 0)
	r.Begin()
	r.Begin()
	is("two", true, 0)
	r.Pause()
	is("one pauses", true, 1)
	r.End()
	is("the other has ended", false, 1)
	r.Resume()
	is("the pause is over", true, 1)
	r.End()
	is("both have ended", false, 1)
}
