package timer

import (
	"testing"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// inDatabase are the places that the database has.
func (w *Wheel) inDatabase(t *testing.T) (list []place) {
	t.Helper()
	err := w.o.State.Scan(state.Wheel, keyOfEntries, func(key, _ []byte) error {
		p, _ := placeOfKey(key)
		list = append(list, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Very many messages that have ended are forgotten at once, and nothing that waits is: not
// what is behind them, between them, being delivered, to be tried again, or new.
func TestWave(t *testing.T) {
	w := indexOnly(t, nil, WheelEvents{})
	now := w.o.Clock.WallMilli()
	const n = 3000
	for i := range int64(n) {
		w.arrive("T", now-n+i/3) // three at each time
	}
	w.store(t)
	var taken []entry
	for {
		due, _, err := w.take(now, now)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) == 0 {
			break
		}
		taken = append(taken, due...)
	}
	if len(taken) != n {
		t.Fatalf("%d were taken", len(taken))
	}
	end := func(from, to int) {
		for _, e := range taken[from:to] {
			w.end(e.place)
		}
	}
	left := make(map[place]bool)
	for _, e := range taken {
		left[e.place] = true
	}
	check := func(when string, gone ...[2]int) {
		t.Helper()
		w.store(t)
		for _, r := range gone {
			for _, e := range taken[r[0]:r[1]] {
				delete(left, e.place)
			}
		}
		got := w.inDatabase(t)
		for _, p := range got {
			if !left[p] {
				t.Fatalf("%s: %v is in the database still", when, p)
			}
		}
		if len(got) != len(left) {
			t.Fatalf("%s: the database has %d, want %d", when, len(got), len(left))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.mu.counts["T"] != int64(len(left)) {
			t.Errorf("%s: %d are counted, want %d", when, w.mu.counts["T"], len(left))
		}
	}
	end(0, 1000)
	check("the first", [2]int{0, 1000})
	end(1001, 2000) // the first of the rest is being delivered
	check("all but one", [2]int{1001, 2000})
	w.retry([]entry{taken[1000]}) // it could not be
	end(2000, 2600)
	check("behind what is tried again", [2]int{2000, 2600})
	w.end(taken[1000].place)
	w.Arrived(&storage.Dispatched{Due: taken[0].due - 5, QueueOffset: w.mu.next, Size: 1, RealTopic: "T"}) // due already
	early := place{taken[0].due - 5, n}
	left[early] = true
	end(2600, n)
	check("behind what is new", [2]int{1000, 1001}, [2]int{2600, n})
	w.end(early)
	delete(left, early)
	check("the last")
}
