package timer

import "testing"

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
