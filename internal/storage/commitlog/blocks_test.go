package commitlog

import (
	"slices"
	"testing"
)

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

// heldBlocks takes blocks from at on until there are no more to be had, or n.
func heldBlocks(c *blocks, at int64, n int) (held []*block) {
	for ; len(held) < n; at += c.size {
		b := c.get(at, func(p []byte) (int, error) { return len(p), nil })
		if b == nil {
			break
		}
		held = append(held, b)
	}
	return held
}

// What readers held is not kept when they are done: the cache and what is free stay within
// their bound. And while readers hold all that there may be, the cache gives what nobody reads.
func TestBlocksThatAreKept(t *testing.T) {
	c := &blocks{size: mostBlock}
	kept := func() int64 { return int64(len(c.byOffset)+len(c.free)) * c.size }
	for round := range int64(3) {
		held := heldBlocks(c, round<<32, mostBytes)
		if got := int64(len(held)) * c.size; got != mostBytes || !c.crowded() {
			t.Errorf("round %d: readers hold %d bytes", round, got)
		}
		for _, b := range held {
			c.unref(b)
		}
		if kept() > cachedBytes || c.crowded() {
			t.Errorf("round %d: %d bytes are kept", round, kept())
		}
	}
	heldBlocks(c, 1<<40, mostBytes/mostBlock-1) // for good
	for i := range int64(200) {
		other := heldBlocks(c, 1<<41+i*c.size, 1)
		if len(other) == 0 || c.alive*c.size > mostBytes {
			t.Fatalf("block %d: %d of them, %d bytes in all", i, len(other), c.alive*c.size)
		}
		c.unref(other[0])
	}
}

// Answers hold the blocks that they are sent from while those are few, and copy out of them
// after that.
func TestAnswersThatNobodyReads(t *testing.T) {
	l := &Log[int]{}
	l.blocks.size = mostBlock
	held := heldBlocks(&l.blocks, 0, 8)
	for i, b := range held {
		b.buf[5] = byte(i)
	}
	lease := Lease{cache: &l.blocks, blocks: slices.Clone(held)}
	spans := make([]Span, len(held)-3)
	for i := range spans {
		spans[i].Bytes = held[3+i].buf[5:6:6]
	}
	lease.copyOut(spans, 3)
	if len(lease.blocks) != 3 || held[2].refs.Load() != 2 || held[3].refs.Load() != 1 {
		t.Errorf("%d blocks are held", len(lease.blocks))
	}
	for i := range spans {
		held[3+i].buf[5] = 0xff
		if spans[i].Bytes[0] != byte(3+i) {
			t.Errorf("record %d is %d", i, spans[i].Bytes[0])
		}
	}
	lease.Release()
	if held[0].refs.Load() != 1 || len(lease.bufs) != 0 {
		t.Error("what was held is not given back")
	}
}

// A block stays while somebody asks for it between two trims; what nobody wants goes, and is
// good for as long as a reader holds it.
func TestBlocksThatNobodyWants(t *testing.T) {
	c := &blocks{size: mostBlock}
	fill := func(p []byte) (int, error) { copy(p, "read"); return len(p), nil }
	wanted, forgotten, read := c.get(0, fill), c.get(c.size, fill), c.get(2*c.size, fill)
	c.unref(wanted)
	c.unref(forgotten)
	c.trim()
	if len(c.byOffset) != 3 {
		t.Errorf("%d blocks are left of those just read", len(c.byOffset))
	}
	c.unref(c.get(0, fill))
	c.trim()
	if len(c.byOffset) != 1 || c.byOffset[0] != wanted {
		t.Errorf("%d blocks are left", len(c.byOffset))
	}
	if string(read.buf[:4]) != "read" || c.alive != 2 {
		t.Errorf("a reader has %q, %d blocks are alive", read.buf[:4], c.alive)
	}
	c.unref(read)
	c.trim()
	if len(c.byOffset) != 0 || len(c.free) != 0 || c.alive != 0 || c.oldest != nil || c.newest != nil {
		t.Errorf("%d blocks and %d buffers are left, %d alive", len(c.byOffset), len(c.free), c.alive)
	}
}
