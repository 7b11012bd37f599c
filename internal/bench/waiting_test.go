package bench

import (
	"testing"
	"time"
)

// TestArrivalsBeforeTheirTime: what comes early is counted, with how early it was at most.
func TestArrivalsBeforeTheirTime(t *testing.T) {
	var a arrivals
	arrived := a.one()
	now := time.Now()
	arrived(now.Add(-50 * time.Millisecond))
	arrived(now.Add(time.Hour))
	arrived(now.Add(time.Minute))
	if early, most := a.early.Load(), time.Duration(a.earliest.Load()); early != 2 || most < 59*time.Minute || most > time.Hour {
		t.Errorf("%d early, by %v at most", early, most)
	}
	if l := a.latency(); l.Max < 50 || l.Max > 60_000 {
		t.Errorf("late by %v ms at most", l.Max)
	}
	if last := time.Unix(0, a.last.Load()); last.Before(now) {
		t.Errorf("the last came at %v, before %v", last, now)
	}
	if r := (Result{Early: 1}); r.Complete() {
		t.Error("a run with an early message is complete")
	}
}
