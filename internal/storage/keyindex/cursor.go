package keyindex

import (
	"errors"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/segment"
)

// Cursor walks through the entries of one hash, the newest first. It sees what was there
// when it came to a file, holds no lock between two steps, and can be left alone for as long
// as its owner likes. One goroutine at a time may use it.
type Cursor struct {
	index      *Index
	hash       int32
	begin, end int64

	files []*file // still to come, the oldest first
	v     view    // of the file that it is in
	next  int32   // number of the entry to look at; 0: the file is done
	over  bool
}

// Find is a cursor over the records whose key has the hash and whose time lies in
// [begin, end].
func (x *Index) Find(hash int32, begin, end int64) *Cursor {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return &Cursor{index: x, hash: hash, begin: begin, end: end, files: append([]*file(nil), x.mu.files...)}
}

// Over reports whether there is nothing more.
func (c *Cursor) Over() bool { return c.over }

// Next gives the log offset of the next record. Other keys may have the hash too, and the
// record's time may lie up to a second beside the range. It looks at *left entries at most,
// and counts them off; found is false when those are used up, or when it is over.
func (c *Cursor) Next(left *int) (offset int64, found bool, err error) {
	for *left > 0 && !c.over {
		*left--
		if c.next == 0 {
			if err := c.older(); err != nil {
				return 0, false, err
			}
			continue
		}
		e, err := c.v.entry(c.next)
		if gone(err) {
			c.next = 0
			continue
		}
		if err != nil {
			return 0, false, err
		}
		// The entry knows whole seconds only: a second more on either side counts, the caller
		// looks at the record itself.
		at := c.v.head.firstTime + int64(e.seconds)*1000
		if e.prev < 0 || e.prev >= c.next || at+1000 <= c.begin {
			c.next = 0
		} else {
			c.next = e.prev
		}
		if e.hash == c.hash && at+1000 > c.begin && at-1000 <= c.end {
			return e.offset, true, nil
		}
	}
	return 0, false, nil
}

// older goes to the next file that may have something. Its cost is that of an entry, since
// there are few files.
func (c *Cursor) older() error {
	for len(c.files) > 0 {
		f := c.files[len(c.files)-1]
		c.files = c.files[:len(c.files)-1]
		c.index.mu.RLock()
		c.v = f.viewLocked(c.hash)
		c.index.mu.RUnlock()
		head := &c.v.head
		if head.count <= 1 || head.firstTime > c.end || head.lastTime+1000 < c.begin {
			continue
		}
		if head.firstTime < c.begin {
			c.files = nil // those before it are older still
		}
		var err error
		if c.next, err = c.v.newest(c.hash); err != nil && !gone(err) {
			return err
		}
		if c.next > 0 {
			return nil
		}
	}
	c.over = true
	return nil
}

// gone reports whether a file was removed while a cursor was in it: what it has points to
// nothing any more.
func gone(err error) bool { return errors.Is(err, segment.ErrNoFile) || oserror.IsNotExist(err) }
