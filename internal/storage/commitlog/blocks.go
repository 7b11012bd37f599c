package commitlog

import (
	"sync"
	"sync/atomic"
)

const (
	// blockSize is what the cache reads at a time.
	blockSize = 64 << 10
	// maxBlocks bounds the cache: 16 MiB, so that who scans the same part of the log over
	// several connections may drift apart a little.
	maxBlocks = 256
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
	newer, old *block
}

// blocks keeps the pieces of the log that were read last. The records of several queues
// lie mixed in the log; those who read these queues at about the same pace share the
// pieces, and the log is read once instead of once for each queue.
type blocks struct {
	mu             sync.Mutex
	byOffset       map[int64]*block
	newest, oldest *block
	free           [][]byte
}

// get gives the block at a multiple of blockSize, read by read when it is not here, which
// mine tells. Who asks for one that is being read waits for it. The caller unrefs it. nil: it
// can't be read whole.
func (c *blocks) get(at int64, read func([]byte) (int, error)) (b *block, mine bool, err error) {
	b, mine = c.find(at)
	if !mine {
		<-b.read
		if b.whole {
			return b, false, nil
		}
		c.unref(b)
		return nil, false, nil
	}
	n, err := read(b.buf)
	b.whole = err == nil && n == blockSize
	close(b.read)
	if !b.whole {
		c.drop(b)
		c.unref(b)
		return nil, true, err
	}
	return b, true, nil
}

// find returns the block at at, held; mine says that it is new and the caller has to fill
// it.
func (c *blocks) find(at int64) (b *block, mine bool) {
	c.mu.Lock()
	if b = c.byOffset[at]; b != nil {
		b.refs.Add(1)
		if c.newest != b {
			c.unlink(b)
			c.push(b)
		}
		c.mu.Unlock()
		return b, false
	}
	b = &block{at: at, read: make(chan struct{})}
	b.refs.Store(2)
	if n := len(c.free); n > 0 {
		b.buf = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		b.buf = make([]byte, blockSize)
	}
	if c.byOffset == nil {
		c.byOffset = make(map[int64]*block)
	}
	c.byOffset[at] = b
	c.push(b)
	var gone *block
	if len(c.byOffset) > maxBlocks {
		gone = c.oldest
		c.unlink(gone)
		delete(c.byOffset, gone.at)
	}
	c.mu.Unlock()
	if gone != nil {
		c.unref(gone)
	}
	return b, true
}

// drop takes a block that could not be read out of the cache, if it still is in it.
func (c *blocks) drop(b *block) {
	c.mu.Lock()
	cached := c.byOffset[b.at] == b
	if cached {
		c.unlink(b)
		delete(c.byOffset, b.at)
	}
	c.mu.Unlock()
	if cached {
		c.unref(b)
	}
}

func (c *blocks) unref(b *block) {
	if b.refs.Add(-1) != 0 {
		return
	}
	c.mu.Lock()
	if len(c.free) < maxBlocks {
		c.free = append(c.free, b.buf)
	}
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
// is found out by trying now and then.
type company struct {
	alone atomic.Int32 // blocks that had to be read for 1,000 records of late, at most 1,000; in sixteenths
	runs  atomic.Uint32
}

const (
	// worthwhile is up to how many blocks for 1,000 records they cost less than 1,000 reads.
	worthwhile = 100
	quiteAlone = 1000
	// tryEvery is how many sparse runs go by until one tries again.
	tryEvery = 32
)

// sparsest is how sparse the next run may be.
func (c *company) sparsest() int64 {
	if c.alone.Load() <= 16*worthwhile || c.runs.Add(1)%tryEvery == 0 {
		return sparsestShared
	}
	return sparsest
}

// noted takes in what a sparse run has cost.
func (c *company) noted(records, blocks int) {
	was := c.alone.Load()
	c.alone.Store(was + (16*int32(min(1000*blocks/records, quiteAlone))-was)/4)
}

// dense is how many of spans, which a run of reads of their own would take, are better
// read by blocks: all that lie in finished blocks, if they lie densely enough. sparse says
// that this is so for the sake of others.
func (l *Log[N]) dense(spans []Span) (n int, sparse bool) {
	limit := l.done.Load() / blockSize * blockSize
	if l.opt.Size%blockSize != 0 {
		return 0, false
	}
	from, bytes, most, sparsely := spans[0].Offset, int64(0), int64(0), 0
	for i := range spans {
		end := spans[i].Offset + int64(spans[i].Size)
		if end > limit || spans[i].Size > blockSize/2 || spans[i].Offset < from || !l.possible(&spans[i]) {
			break
		}
		bytes += int64(spans[i].Size)
		if bytes*sparsest >= end-from {
			n = i + 1
			continue
		}
		if most == 0 {
			most = l.company.sparsest()
		}
		if bytes*most >= end-from {
			sparsely = i + 1
		}
	}
	if sparsely > n {
		return sparsely, true
	}
	return n, false
}

// readSparse is readBlocks for a sparse run. It keeps copies of the records and no block, of
// which there may be one for each.
func (l *Log[N]) readSparse(spans []Span, lease *Lease) (int, error) {
	if lease.sparse == nil {
		lease.sparse = new(Lease)
	}
	blocks := lease.sparse
	defer blocks.Release()
	n, err := l.readBlocks(spans, blocks)
	if n == 0 {
		return 0, err
	}
	l.company.noted(n, blocks.read)
	size := 0
	for i := range spans[:n] {
		size += len(spans[i].Bytes)
	}
	buf := getBuffer(size)
	lease.bufs = append(lease.bufs, buf)
	rest := (*buf)[:size]
	for i := range spans[:n] {
		m := copy(rest, spans[i].Bytes)
		spans[i].Bytes, rest = rest[:m:m], rest[m:]
	}
	return n, err
}

// readBlocks fills in spans from blocks; a record that crosses into the next block is
// put together in a buffer of its own.
func (l *Log[N]) readBlocks(spans []Span, lease *Lease) (int, error) {
	lease.cache = &l.blocks
	var b *block
	for i := range spans {
		s := &spans[i]
		at := s.Offset / blockSize * blockSize
		var err error
		if b == nil || b.at != at {
			if b, err = l.block(at, lease); b == nil {
				return i, err
			}
		}
		in := s.Offset - at
		if end := in + int64(s.Size); end <= blockSize {
			s.Bytes = b.buf[in:end:end]
		} else {
			first := b
			if b, err = l.block(at+blockSize, lease); b == nil {
				return i, err
			}
			buf := getBuffer(int(s.Size))
			lease.bufs = append(lease.bufs, buf)
			s.Bytes = (*buf)[:s.Size:s.Size]
			n := copy(s.Bytes, first.buf[in:])
			copy(s.Bytes[n:], b.buf)
		}
		if !matches(s) {
			return i, ErrNoRecord
		}
	}
	return len(spans), nil
}

func (l *Log[N]) block(at int64, lease *Lease) (*block, error) {
	b, mine, err := l.blocks.get(at, func(p []byte) (int, error) { return l.set.ReadAt(p, at) })
	if mine {
		lease.read++
	}
	if b != nil {
		lease.blocks = append(lease.blocks, b)
	}
	return b, err
}
