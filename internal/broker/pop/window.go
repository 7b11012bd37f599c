package pop

import (
	"container/heap"
	"math/bits"
	"slices"
	"sync"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// windowKey names a window. topic is the real one: a retry topic for redeliveries.
type windowKey struct {
	group, topic string
	queue        int32
}

// window is what a group knows of one queue. Offsets below next are in flight (in blocks),
// set aside, or done; next and above are not yet read.
//
// Records lie in blocks of 64 offsets, so that an offset is found with one map look-up and
// a look at the few records of its block, and a batch of 32 is one or two records. Only
// the holder of the subject's lock moves next forward, so a queue is read by one request
// at a time; acks, changes and lapses need mu alone.
type window struct {
	key     windowKey
	id      uint32 // its number in the state database, never reused
	subject *subject
	flag    byte // of the topic: receipt.FlagNormal or a retry topic
	ordered bool

	queued bool // in flushQueue.dirty; guarded by flushQueue.mu

	mu struct {
		sync.Mutex
		next     int64
		known    bool // next has been decided
		dropped  bool // topic or group is gone: nothing more is written
		idle     bool // since ForgetIdle last looked
		epoch    uint64
		blocks   map[int64]*block
		lowest   offsetHeap // blocks that may be the lowest; dead ones are dropped lazily
		inFlight int
		refused  bool         // a request went away because there are too many in flight
		aside    []asideEntry // sorted by offset
		busy     map[uint64]int
		stuck    bool // every message set aside waits for a busy message group
		moved    map[int64]movedEntry
		movedLog movedHeap // what moved holds, and what it held, by their ends

		dirty      []*record
		asideDirty []int64
		nextDirty  bool  // next or floor
		afterLog   bool  // what changed has its successor in the log
		told       int64 // lowest offset that the offset table was told
		swept      int64 // when aside was last searched for what nobody wants
		// Of what was popped before floor and is gone, nobody knows how it ended. No
		// delivery is named by an earlier time.
		floor int64
	}
}

// block is the records of 64 consecutive offsets.
type block struct {
	recs []*record
}

// record is what is in flight of one popped batch within one block.
type record struct {
	w         *window
	base      int64 // first offset of the block
	popTime   int64
	due       int64 // guarded like dueHeap says
	invisible int64
	live      uint64 // bit i: offset base+i is in flight
	heapPos   int32  // in dueHeap, -1 outside; guarded by dueHeap.mu
	holder    uint32
	first     uint8 // lowest offset when it was made, relative to base: part of its name
	flags     recordFlags
	more      *recordMore
}

// newRecord is one that begins at offset; what is in flight of it is still to be said.
func newRecord(w *window, offset, popTime, invisible int64) *record {
	return &record{w: w, base: offset &^ 63, first: uint8(offset & 63), popTime: popTime, invisible: invisible, heapPos: -1}
}

type recordFlags uint8

const (
	flagRenew   recordFlags = 1 << iota // renewed while the holder is present
	flagClaimed                         // revive has it: no ack any more (P7)
	flagSuspend                         // its lapse is not an attempt, it goes back in place
	flagStored                          // the state database has it; not persisted
	flagDirty                           // in window.mu.dirty; not persisted
	persistent  = flagRenew | flagClaimed | flagSuspend
)

// recordMore is what few records have.
type recordMore struct {
	until    int64  // a receipt of these messages may claim to be valid until then
	appended uint64 // copies that the log has, or is to have as dead letters, and dispatch has not yet reported
	failures int    // of writing copies
	group    uint64 // message group of an ordered batch
	attempts int32  // deliveries of an ordered batch before this one
	attempt  string // attempt id of the request

	forwarded uint64        // those of appended that their consumer asked for
	forwards  []*forwarding // those of forwarded that are being written
}

// movedEntry remembers that an offset was moved on while a receipt of it still looks valid.
type movedEntry struct {
	offset  int64
	popTime int64
	until   int64
}

func newWindow(k windowKey, id uint32) *window {
	w := &window{key: k, id: id}
	w.mu.blocks = make(map[int64]*block)
	w.mu.told = -1
	return w
}

func (r *record) offset(bit int) int64 { return r.base + int64(bit) }

// rowLocked is what the state database is to have of the window.
func (w *window) rowLocked() windowRow {
	row := windowRow{id: w.id, next: w.mu.next}
	if names.IsLite(w.key.topic) {
		row.floor = w.mu.floor
	}
	return row
}

// extra returns r.more, made when needed.
func (r *record) extra() *recordMore {
	if r.more == nil {
		r.more = &recordMore{}
	}
	return r.more
}

// claimsUntil is how long some receipt of r's messages claims to be valid.
func (r *record) claimsUntil() int64 {
	own := r.popTime + r.invisible
	if r.more != nil {
		return max(own, r.more.until)
	}
	return own
}

// findLocked returns the record in which offset is in flight, nil if it is not.
func (w *window) findLocked(offset int64) *record {
	b := w.mu.blocks[offset>>6]
	if b == nil {
		return nil
	}
	bit := uint64(1) << (offset & 63)
	for _, r := range b.recs {
		if r.live&bit != 0 {
			return r
		}
	}
	return nil
}

// addLocked puts r, whose live bits are set, into its block.
func (w *window) addLocked(r *record) {
	i := r.base >> 6
	b := w.mu.blocks[i]
	if b == nil {
		b = &block{}
		w.mu.blocks[i] = b
		w.mu.lowest.push(i)
	}
	b.recs = append(b.recs, r)
	w.mu.inFlight += bits.OnesCount64(r.live)
	w.touchLocked(r)
}

// clearLocked takes bit out of flight. A record that has none left leaves its block; the
// caller takes it out of the due heap.
func (w *window) clearLocked(r *record, bit uint64) (empty bool) {
	w.mu.inFlight -= bits.OnesCount64(r.live & bit)
	r.live &^= bit
	w.touchLocked(r)
	if r.live != 0 {
		return false
	}
	i := r.base >> 6
	b := w.mu.blocks[i]
	at := slices.Index(b.recs, r)
	last := len(b.recs) - 1
	b.recs[at] = b.recs[last]
	b.recs[last] = nil
	b.recs = b.recs[:last]
	if last == 0 {
		delete(w.mu.blocks, i)
	}
	return true
}

// touchLocked notes that the state database must learn of r.
func (w *window) touchLocked(r *record) {
	if r.flags&flagDirty == 0 {
		r.flags |= flagDirty
		w.mu.dirty = append(w.mu.dirty, r)
	}
}

// lowestLocked is the lowest message that is not done.
func (w *window) lowestLocked() int64 {
	low := w.mu.next
	if len(w.mu.aside) > 0 {
		low = min(low, w.mu.aside[0].offset)
	}
	h := &w.mu.lowest
	for len(*h) > 0 {
		i := (*h)[0]
		b := w.mu.blocks[i]
		if b == nil {
			h.pop()
			continue
		}
		for _, r := range b.recs {
			low = min(low, r.offset(bits.TrailingZeros64(r.live)))
		}
		break
	}
	if len(*h) > 64 && len(*h) > 2*len(w.mu.blocks) {
		w.rebuildLowestLocked()
	}
	return low
}

func (w *window) rebuildLowestLocked() {
	w.mu.lowest = w.mu.lowest[:0]
	for i := range w.mu.blocks {
		w.mu.lowest = append(w.mu.lowest, i)
	}
	slices.Sort(w.mu.lowest) // a sorted slice is a heap
}

// rememberLocked notes that offset left popTime's hands before every receipt of it says so.
func (w *window) rememberLocked(offset, popTime, until, now int64) {
	if until <= now {
		return
	}
	if w.mu.moved == nil {
		w.mu.moved = make(map[int64]movedEntry)
	}
	e := movedEntry{offset, popTime, until}
	w.mu.moved[offset] = e
	heap.Push(&w.mu.movedLog, e)
	w.forgetLocked(now)
}

// maxMoved is how many of them a window remembers: a receipt may claim to be valid for
// thousands of years.
const maxMoved = 1 << 16

// forgetLocked drops what no receipt can claim any more, a few at a time; and, when there
// are too many, those of a half that end first: what their receipts ask is not known any more.
func (w *window) forgetLocked(now int64) {
	for n := 0; n < 4 && len(w.mu.movedLog) > 0 && w.mu.movedLog[0].until <= now; n++ {
		w.forgetFirstLocked()
	}
	if len(w.mu.movedLog) > maxMoved {
		for len(w.mu.movedLog) > maxMoved/2 {
			e := w.forgetFirstLocked()
			w.mu.floor, w.mu.nextDirty = max(w.mu.floor, e.popTime+1), true
		}
	}
	if len(w.mu.movedLog) == 0 {
		w.mu.movedLog = nil
	}
}

func (w *window) forgetFirstLocked() movedEntry {
	e := heap.Pop(&w.mu.movedLog).(movedEntry)
	if w.mu.moved[e.offset] == e {
		delete(w.mu.moved, e.offset)
	}
	return e
}

// movedHeap is a heap by the ends.
type movedHeap []movedEntry

// Len is for package heap, as are the others.
func (h movedHeap) Len() int { return len(h) }

// Less orders by the ends.
func (h movedHeap) Less(i, j int) bool { return h[i].until < h[j].until }

// Swap swaps.
func (h movedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds.
func (h *movedHeap) Push(e any) { *h = append(*h, e.(movedEntry)) }

// Pop takes the last.
func (h *movedHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// offsetHeap is a binary heap of block numbers.
type offsetHeap []int64

func (h *offsetHeap) push(v int64) {
	*h = append(*h, v)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[i] >= s[parent] {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *offsetHeap) pop() {
	s := *h
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(s) {
			return
		}
		if c+1 < len(s) && s[c+1] < s[c] {
			c++
		}
		if s[i] <= s[c] {
			return
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}
