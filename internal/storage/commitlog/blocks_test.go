package commitlog

import "testing"

// Sparse runs are read by blocks while those who read them want the same blocks, and not
// when one reads by itself, nor when each reads elsewhere.
func TestCompany(t *testing.T) {
	const queues, record = 64, 1250
	// run is what a reader of one queue of many wants next.
	run := func(queue, turn int64) []Span {
		spans := make([]Span, 32)
		for i := range spans {
			spans[i] = Span{Offset: ((turn*int64(len(spans))+int64(i))*queues + queue) * record, Size: record}
		}
		return spans
	}
	var c company
	c.alone.Store(16 * quiteAlone)
	// shared is how many of the runs of readers that take turns are to be read by blocks.
	shared := func(readers, turns int64, at func(reader, turn int64) []Span) (n int64) {
		for turn := range turns {
			for reader := range readers {
				if c.shared(at(reader, turn), mostBlock) {
					n++
				}
			}
		}
		return n
	}
	if n := shared(1, 100, run); n != 0 {
		t.Errorf("alone: %d of 100 runs by blocks", n)
	}
	sideBySide := func(reader, turn int64) []Span { return run(reader, 1000+turn) }
	if n := shared(queues, 1, sideBySide); n == 0 {
		t.Error("side by side: nothing is read by blocks after a turn of all")
	}
	if n := shared(queues, 10, func(reader, turn int64) []Span { return sideBySide(reader, 1+turn) }); n != 10*queues {
		t.Errorf("side by side: %d of %d runs by blocks", n, 10*queues)
	}
	if n := shared(1, 100, func(_, turn int64) []Span { return run(0, 2000+turn) }); n > 20 {
		t.Errorf("alone again: %d of 100 runs by blocks", n)
	}
	if n := shared(queues, 10, func(reader, turn int64) []Span { return run(reader, 10_000*reader+turn) }); n != 0 {
		t.Errorf("each elsewhere: %d of %d runs by blocks", n, 10*queues)
	}
}
