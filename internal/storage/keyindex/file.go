package keyindex

import (
	"math"

	"github.com/bolidemq/bolide/internal/storage/segment"
)

const (
	headerSize = 40
	slotSize   = 4
	entrySize  = 20

	// pageSlots is how many slots are read and written together.
	pageSlots = 1024
)

// header is the first 40 bytes.
type header struct {
	firstTime, lastTime     int64
	firstOffset, lastOffset int64
	used, count             int32
}

func (h *header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = be.AppendUint64(b, uint64(h.firstTime))
	b = be.AppendUint64(b, uint64(h.lastTime))
	b = be.AppendUint64(b, uint64(h.firstOffset))
	b = be.AppendUint64(b, uint64(h.lastOffset))
	b = be.AppendUint32(b, uint32(h.used))
	return be.AppendUint32(b, uint32(h.count))
}

func decodeHeader(b []byte) header {
	return header{
		firstTime: int64(be.Uint64(b)), lastTime: int64(be.Uint64(b[8:])),
		firstOffset: int64(be.Uint64(b[16:])), lastOffset: int64(be.Uint64(b[24:])),
		used: int32(be.Uint32(b[32:])), count: int32(be.Uint32(b[36:])),
	}
}

// entry is one of the 20-byte entries.
type entry struct {
	hash    int32
	offset  int64
	seconds int32 // since the file's first store time
	prev    int32 // number of the entry before it in its slot's chain
}

func appendEntry(b []byte, e entry) []byte {
	b = be.AppendUint32(b, uint32(e.hash))
	b = be.AppendUint64(b, uint64(e.offset))
	b = be.AppendUint32(b, uint32(e.seconds))
	return be.AppendUint32(b, uint32(e.prev))
}

func decodeEntry(b []byte) entry {
	return entry{hash: int32(be.Uint32(b)), offset: int64(be.Uint64(b[4:])),
		seconds: int32(be.Uint32(b[12:])), prev: int32(be.Uint32(b[16:]))}
}

// page is a run of slots in memory; each holds the number of its newest entry.
type page struct {
	slots [pageSlots]int32
	dirty bool
}

// file is one index file. What is guarded by what is said at Index.
type file struct {
	*segment.File
	index *Index
	name  string
	head  header
	pages []*page // of the newest file; nil where not read yet
	dirty []int32 // numbers of dirty pages
	first int32   // number of the first entry in tail
	tail  []byte  // newest entries; bytes once written never change

	flushed int32 // entries before it are written
	saved   int32 // count in the header on disk; Flush's
	fresh   bool  // not made on disk yet
}

func (x *Index) newFile(name string) *file {
	return &file{File: segment.NewFile(x.opt.Pool, x.opt.Dir, name, x.size()), index: x, name: name}
}

func (f *file) slotAt(slot int) int64 { return headerSize + int64(slot)*slotSize }

func (f *file) entryAt(n int32) int64 {
	return headerSize + int64(f.index.opt.Slots)*slotSize + int64(n)*entrySize
}

// load reads the header and reports whether file and header can be true.
func (f *file) load() (sound bool, err error) {
	size, err := f.Size()
	if err != nil || size != f.index.size() {
		return false, err
	}
	var b [headerSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return false, err
	}
	f.head = decodeHeader(b[:])
	h := &f.head
	if h.count < 2 || int(h.count) > f.index.opt.Entries || h.lastOffset < h.firstOffset || h.lastTime < h.firstTime {
		return false, nil
	}
	first, err := f.readEntry(1)
	if err != nil {
		return false, err
	}
	last, err := f.readEntry(h.count - 1)
	if err != nil {
		return false, err
	}
	f.first, f.flushed, f.saved = h.count, h.count, h.count
	f.pages = make([]*page, (f.index.opt.Slots+pageSlots-1)/pageSlots)
	return first.offset == h.firstOffset && last.offset == h.lastOffset && last.prev < h.count, nil
}

func (f *file) readEntry(n int32) (entry, error) {
	var b [entrySize]byte
	_, err := f.ReadAt(b[:], f.entryAt(n))
	return decodeEntry(b[:]), err
}

// page gives the page of a slot, reading it when it is not in memory.
func (f *file) page(slot int) (*page, error) {
	i := slot / pageSlots
	if p := f.pages[i]; p != nil {
		return p, nil
	}
	p := &page{}
	if !f.fresh {
		var b [pageSlots * slotSize]byte
		n := min(len(b), (f.index.opt.Slots-i*pageSlots)*slotSize)
		if _, err := f.ReadAt(b[:n], f.slotAt(i*pageSlots)); err != nil {
			return nil, err
		}
		for j := range n / slotSize {
			p.slots[j] = int32(be.Uint32(b[j*slotSize:]))
		}
	}
	f.pages[i] = p
	return p, nil
}

func (f *file) put(hash int32, offset, storeTime int64) error {
	slot := int(hash) % f.index.opt.Slots
	p, err := f.page(slot)
	if err != nil {
		return err
	}
	h := &f.head
	at := &p.slots[slot%pageSlots]
	prev := *at
	if prev < 0 || prev >= h.count {
		prev = 0
	}
	if h.count == 1 {
		h.firstTime, h.firstOffset = storeTime, offset
	}
	seconds := min(max((storeTime-h.firstTime)/1000, 0), math.MaxInt32)
	f.tail = appendEntry(f.tail, entry{hash: hash, offset: offset, seconds: int32(seconds), prev: prev})
	*at = h.count
	if prev == 0 {
		h.used++
	}
	h.count++
	h.lastOffset, h.lastTime = offset, storeTime
	if !p.dirty {
		p.dirty = true
		f.dirty = append(f.dirty, int32(slot/pageSlots))
	}
	return nil
}

// view is what a query needs of a file at one moment.
type view struct {
	f     *file
	head  header
	first int32
	tail  []byte
	slot  int32 // newest entry of the slot, -1 when it is not in memory

	// block is what was read last, from the entry blockAt on: in a long chain of one hash
	// the next entry is close by.
	block   []byte
	blockAt int32
}

// blockEntries is how many entries are read together, about a page of the system.
const blockEntries = 204

func (f *file) viewLocked(hash int32) view {
	v := view{f: f, head: f.head, first: f.first, tail: f.tail, slot: -1}
	slot := int(hash) % f.index.opt.Slots
	if len(f.pages) > 0 && f.pages[slot/pageSlots] != nil {
		v.slot = f.pages[slot/pageSlots].slots[slot%pageSlots]
	} else if f.fresh {
		v.slot = 0
	}
	return v
}

func (v *view) entry(n int32) (entry, error) {
	if n >= v.first {
		return decodeEntry(v.tail[int(n-v.first)*entrySize:]), nil
	}
	if i := int(n-v.blockAt) * entrySize; i >= 0 && i < len(v.block) {
		return decodeEntry(v.block[i:]), nil
	}
	from := n / blockEntries * blockEntries
	if v.block == nil {
		v.block = make([]byte, 0, blockEntries*entrySize)
	}
	v.block, v.blockAt = v.block[:min(v.first-from, blockEntries)*entrySize], from
	if _, err := v.f.ReadAt(v.block, v.f.entryAt(from)); err != nil {
		v.block = v.block[:0]
		return entry{}, err
	}
	return decodeEntry(v.block[int(n-from)*entrySize:]), nil
}

// newest is the number of the newest entry of the hash's slot, 0 when there is none.
func (v *view) newest(hash int32) (int32, error) {
	n := v.slot
	if n < 0 {
		var b [slotSize]byte
		if _, err := v.f.ReadAt(b[:], v.f.slotAt(int(hash)%v.f.index.opt.Slots)); err != nil {
			return 0, err
		}
		n = int32(be.Uint32(b[:]))
	}
	if n < 0 || n >= v.head.count {
		return 0, nil
	}
	return n, nil
}
