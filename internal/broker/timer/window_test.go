package timer

import (
	"slices"
	"testing"
)

// What is stored while the window is loaded, after the database was asked, is in the window if
// it waits, and not if it has ended: neither the scan nor the changes that are not stored yet
// know of it.
func TestStoredWhileTheWindowIsLoaded(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	now := w.o.Clock.WallMilli()
	m := &w.mu
	w.arrive("T", now+1000) // and is stored at once
	if m.passed.puts != nil {
		t.Error("what is stored is kept though no window is loaded")
	}
	m.loading = make(map[place]struct{})
	w.arrive("T", now+2000)
	w.arrive("T", now+3000)
	w.end(place{now + 3000, 2})
	ended := place{now + 1000, 0}
	m.passed.add(changes{dels: map[place]struct{}{ended: {}}}) // it ended before the scan began

	found := []entry{{place: ended, size: 100, topic: "T"}}
	left, passed := m.loading, m.passed
	m.loading, m.passed = nil, changes{}
	w.spreadLocked(m.edge, noEdge, found, left, passed)
	if len(m.near) != 1 || m.near[0].place != (place{now + 2000, 1}) {
		t.Errorf("the window is %v, want what is due at %d alone", m.near, now+2000)
	}
}

// What is known from several sides when the window is loaded is in it once: from the database, of
// what was stored since it was asked, and of what is not stored or on its way there.
func TestKnownFromSeveralSidesIsLoadedOnce(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	m := &w.mu
	now := w.o.Clock.WallMilli()
	sides := []func(e entry, found *[]entry, passed *changes){
		func(e entry, found *[]entry, _ *changes) { *found = append(*found, e) },
		func(e entry, _ *[]entry, passed *changes) { passed.puts[e.place] = e },
		func(e entry, _ *[]entry, _ *changes) { m.puts[e.place] = e },
		func(e entry, _ *[]entry, _ *changes) { m.sent.puts[e.place] = e },
	}
	var found []entry
	passed := changes{puts: make(map[place]entry), dels: make(map[place]struct{})}
	m.sent.puts = make(map[place]entry)
	left := make(map[place]struct{})
	var want []place
	for round := range int64(3) {
		for from := range 1 << len(sides) {
			e := entry{place: place{now + round*100 + int64(from/2), int64(from)}, size: 100, topic: "T"}
			for i, side := range sides {
				if from>>i&1 == 1 {
					side(e, &found, &passed)
				}
			}
			switch {
			case from == 0:
			case round == 1: // and has ended since
				left[e.place] = struct{}{}
			default:
				want = append(want, e.place)
			}
		}
	}
	claimed := want[0]
	m.claims[claimed] = claim{entry: entry{place: claimed}, popped: true}
	m.edge = place{now, 0}
	w.spreadLocked(m.edge, noEdge, found, left, passed)
	var got []place
	for len(m.near) > 0 {
		got = append(got, m.near.pop().place)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the window is\n%v, want\n%v", got, want)
	}
	if m.claims[claimed].popped {
		t.Error("who has claimed what is in the window again is not told")
	}
}
