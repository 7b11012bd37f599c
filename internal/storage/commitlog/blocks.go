package commitlog

import (
	"sync"
	"sync/atomic"
)

const (
	// mostBlock is how much the cache reads at a time; of a log of small files, what divides
	// a file evenly. Large blocks are found and held for many records at once, and read with
	// few calls.
	mostBlock = 256 << 10
	// cachedBytes bounds the cache, so that who reads the same part of the log over several
	// connections may drift apart a little: consumers of 64 queues of 1 KiB messages look at
	// 2.5 MB at a time.
	cachedBytes = 16 << 20
	// mostBytes bounds the blocks that there are, those included that only readers hold. Then
	// records are read by themselves.
	mostBytes = 64 << 20
	// heldBytes is up to how many of them there may be while answers hold the blocks that they
	// are sent from. Beyond that they take a copy of their records, so that peers that do not
	// read what they asked for leave the cache to the others.
	heldBytes = mostBytes / 2
	// sparsest is how many times their own bytes a run of records may span and still be
	// read by blocks. At this many it costs as much as a read for each record, even if
	// nobody else wants the rest.
	sparsest = 10
	// sparsestShared is the same where others want the rest: as many queues may take turns.
	sparsestShared = 256
)

// block is a piece of the log that was read whole. refs counts the cache and the readers;
// at zero the buffer is used again.
type block struct {
	at         int64
	buf        []byte
	refs       atomic.Int32
	read       chan struct{} // closed when buf has been filled
	whole      bool          // buf is full; valid when read is closed
	wanted     uint64        // in which of the cache's spells it was asked for last
	newer, old *block
}

// blocks keeps the pieces of the log that were read last. The records of several queues
// lie mixed in the log; those who read these queues at about the same pace share the
// pieces, and the log is read once instead of once for each queue.
type blocks struct {
	size int64 // of a block; 0: there are none

	mu             sync.Mutex
	byOffset       map[int64]*block
	newest, oldest *block
	alive          int64    // blocks that somebody holds, the cache or a reader
	free           [][]byte // buffers; with those of the cache they are at most cachedBytes
	spell          uint64   // goes on with each trim
}

// blockSize is the size of the blocks of a log whose files have this size.
func blockSize(file int64) int64 {
	size := int64(mostBlock)
	for file%size != 0 {
		size /= 2
	}
	if size < 4<<10 { // a page
		return 0
	}
	return size
}

// get gives the block at a multiple of the block size, read by read when it is not here. Who
// asks for one that is being read waits for it. The caller unrefs it. nil: it can't be had, and
// reading the records themselves will tell why.
func (c *blocks) get(at int64, read func([]byte) (int, error)) *block {
	b, mine := c.find(at)
	if b == nil {
		return nil
	}
	if mine {
		n, err := read(b.buf)
		b.whole = err == nil && n == len(b.buf)
		close(b.read)
	} else {
		<-b.read
	}
	if b.whole {
		return b
	}
	if mine {
		c.drop(b)
	}
	c.unref(b)
	return nil
}

// find returns the block at at, held; mine says that it is new and the caller has to fill
// it. nil when there are too many.
func (c *blocks) find(at int64) (b *block, mine bool) {
	c.mu.Lock()
	if b = c.byOffset[at]; b != nil {
		b.refs.Add(1)
		b.wanted = c.spell
		if c.newest != b {
			c.unlink(b)
			c.push(b)
		}
		c.mu.Unlock()
		return b, false
	}
	defer c.mu.Unlock()
	c.makeRoomLocked()
	if c.alive*c.size >= mostBytes {
		return nil, false
	}
	c.alive++
	b = &block{at: at, read: make(chan struct{}), wanted: c.spell}
	b.refs.Store(2)
	if n := len(c.free); n > 0 {
		b.buf = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		b.buf = make([]byte, c.size)
	}
	if c.byOffset == nil {
		c.byOffset = make(map[int64]*block)
	}
	c.byOffset[at] = b
	c.push(b)
	return b, true
}

// makeRoomLocked lets go of the oldest block of the cache if a new one needs its place, or its
// buffer.
func (c *blocks) makeRoomLocked() {
	gone := c.oldest
	switch {
	case c.alive*c.size >= mostBytes:
		for gone != nil && gone.refs.Load() > 1 { // somebody reads it
			gone = gone.newer
		}
	case int64(len(c.byOffset)+1)*c.size <= cachedBytes:
		return
	}
	if gone != nil {
		c.removeLocked(gone)
	}
}

// removeLocked takes a block out of the cache.
func (c *blocks) removeLocked(b *block) {
	c.unlink(b)
	delete(c.byOffset, b.at)
	if b.refs.Add(-1) == 0 {
		c.freeLocked(b)
	}
}

// trim lets go of the blocks that nobody has asked for since the trim before, and of all free
// buffers: a log whose readers have caught up keeps none.
func (c *blocks) trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.oldest != nil && c.oldest.wanted != c.spell {
		c.removeLocked(c.oldest)
	}
	c.free = nil
	c.spell++
}

// freeLocked ends a block that nobody holds.
func (c *blocks) freeLocked(b *block) {
	c.alive--
	if int64(len(c.byOffset)+len(c.free)+1)*c.size <= cachedBytes {
		c.free = append(c.free, b.buf)
	}
}

// crowded reports whether there are so many blocks that answers are not to hold any more.
func (c *blocks) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive*c.size > heldBytes
}

// drop takes a block that could not be read out of the cache, if it still is in it.
func (c *blocks) drop(b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byOffset[b.at] == b {
		c.removeLocked(b)
	}
}

func (c *blocks) unref(b *block) {
	if b.refs.Add(-1) != 0 {
		return
	}
	c.mu.Lock()
	c.freeLocked(b)
	c.mu.Unlock()
}

func (c *blocks) push(b *block) {
	b.newer, b.old = nil, c.newest
	if c.newest != nil {
		c.newest.newer = b
	}
	c.newest = b
	if c.oldest == nil {
		c.oldest = b
	}
}

func (c *blocks) unlink(b *block) {
	if b.newer != nil {
		b.newer.old = b.old
	} else {
		c.newest = b.old
	}
	if b.old != nil {
		b.old.newer = b.newer
	} else {
		c.oldest = b.newer
	}
}

// company tells whether sparse runs are worth reading by blocks, because those who read them
// share the blocks: as consumers of many queues do that go through a backlog side by side. It
// remembers which blocks were wanted last, read or not, and so knows what the cache would have
// had.
type company struct {
	wanted [cachedBytes / mostBlock]atomic.Int64 // the block's number and one, by its remainder
	alone  atomic.Int32                          // blocks that 1,000 records of late would have had read; in sixteenths
}

const (
	// worthwhile is up to how many blocks for 1,000 records they cost less than 1,000 reads.
	worthwhile = 40
	quiteAlone = 1000
)

// shared takes in the next sparse run and reports whether to read it by blocks.
func (c *company) shared(spans []Span, size int64) bool {
	missing := 0
	for i := range spans {
		block := spans[i].Offset/size + 1
		if last := &c.wanted[block%int64(len(c.wanted))]; last.Load() != block {
			last.Store(block)
			missing++
		}
	}
	was := c.alone.Load()
	now := was + int32(quiteAlone*missing/len(spans)) - was/16
	c.alone.Store(now)
	return now <= 16*worthwhile
}

// dense is how many of spans, which a run of reads of their own would take, are better
// read by blocks: all that lie in finished blocks, if they lie densely enough, or densely
// enough for the sake of others. Where they do not, the lease keeps that in mind.
func (l *Log[N]) dense(spans []Span, lease *Lease) (n int) {
	size := l.blocks.size
	if size == 0 {
		return 0
	}
	limit := l.done.Load() / size * size
	from, bytes, sparsely := spans[0].Offset, int64(0), 0
	for i := range spans {
		end := spans[i].Offset + int64(spans[i].Size)
		if end > limit || int64(spans[i].Size) > size/2 || spans[i].Offset < from || !l.possible(&spans[i]) {
			break
		}
		bytes += int64(spans[i].Size)
		if bytes*sparsest >= end-from {
			n = i + 1
		} else if bytes*sparsestShared >= end-from {
			sparsely = i + 1
		}
	}
	if sparsely <= n || lease.alone > 0 {
		return n
	}
	if l.company.shared(spans[:sparsely], size) {
		return sparsely
	}
	lease.alone = sparsely
	return n
}

// readBlocks fills in spans from blocks, up to the first that is not to be had from them, and
// returns how many that are; a record that crosses into the next block is put together in a
// buffer of its own.
func (l *Log[N]) readBlocks(spans []Span, lease *Lease) int {
	lease.cache = &l.blocks
	held := len(lease.blocks)
	n := l.fromBlocks(spans, lease)
	if l.blocks.crowded() {
		lease.copyOut(spans[:n], held)
	}
	return n
}

// copyOut copies spans into a buffer of their own, and lets go of the blocks from held on.
func (l *Lease) copyOut(spans []Span, held int) {
	bytes := 0
	for i := range spans {
		bytes += len(spans[i].Bytes)
	}
	if bytes > 0 {
		buf := getBuffer(bytes)
		l.bufs = append(l.bufs, buf)
		at := 0
		for i := range spans {
			end := at + copy((*buf)[at:], spans[i].Bytes)
			spans[i].Bytes = (*buf)[at:end:end]
			at = end
		}
	}
	for i, b := range l.blocks[held:] {
		l.cache.unref(b)
		l.blocks[held+i] = nil
	}
	l.blocks = l.blocks[:held]
}

func (l *Log[N]) fromBlocks(spans []Span, lease *Lease) int {
	size := l.blocks.size
	var b *block
	for i := range spans {
		s := &spans[i]
		at := s.Offset / size * size
		if b == nil || b.at != at {
			if b = l.block(at, lease); b == nil {
				return i
			}
		}
		in := s.Offset - at
		if end := in + int64(s.Size); end <= size {
			s.Bytes = b.buf[in:end:end]
		} else {
			first := b
			if b = l.block(at+size, lease); b == nil {
				return i
			}
			buf := getBuffer(int(s.Size))
			lease.bufs = append(lease.bufs, buf)
			s.Bytes = (*buf)[:s.Size:s.Size]
			n := copy(s.Bytes, first.buf[in:])
			copy(s.Bytes[n:], b.buf)
		}
		if !matches(s) {
			return i
		}
	}
	return len(spans)
}

func (l *Log[N]) block(at int64, lease *Lease) *block {
	b := l.blocks.get(at, func(p []byte) (int, error) { return l.set.ReadAt(p, at) })
	if b != nil {
		lease.blocks = append(lease.blocks, b)
	}
	return b
}
