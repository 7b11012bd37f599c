package keyindex

import (
	"github.com/bolidemq/bolide/internal/storage/segment"
)

// flush makes the file durable in three steps, each synced before the next: entries,
// slots, header. So whatever a header counts is there after a power cut. The caller holds
// flushing. newest says whether the file still grows.
func (f *file) flush(newest bool) (FileInfo, error) {
	x := f.index
	x.mu.Lock()
	count, last, fresh := f.head.count, f.head.lastOffset, f.fresh
	x.mu.Unlock()
	if count == f.saved {
		f.letGo(newest)
		return FileInfo{Name: f.name, Count: count, Last: last}, nil
	}
	if fresh {
		if err := f.Create(); err != nil {
			return FileInfo{}, err
		}
		x.mu.Lock()
		f.fresh = false
		x.mu.Unlock()
	}
	if err := f.writeEntries(); err != nil {
		return FileInfo{}, err
	}
	if err := f.Sync(); err != nil {
		return FileInfo{}, err
	}
	// The header as it is now: the slots that are written next know at least its entries.
	x.mu.Lock()
	head := f.head
	more := f.flushed != head.count
	head.count = f.flushed
	x.mu.Unlock()
	if more {
		// More came while the entries were written; the header must name the last of those
		// that it counts.
		last, err := f.readEntry(head.count - 1)
		if err != nil {
			return FileInfo{}, err
		}
		head.lastOffset = last.offset
		head.lastTime = head.firstTime + int64(last.seconds)*1000
	}
	if err := f.writeSlots(); err != nil {
		return FileInfo{}, err
	}
	if err := f.Sync(); err != nil {
		return FileInfo{}, err
	}
	if x.opt.SyncLog != nil {
		if err := x.opt.SyncLog(); err != nil {
			return FileInfo{}, err
		}
	}
	if err := f.WriteAt(head.encode(), 0); err != nil {
		return FileInfo{}, err
	}
	if err := f.Sync(); err != nil {
		return FileInfo{}, err
	}
	if fresh {
		fs := x.opt.Pool.FS()
		if err := segment.SyncDir(fs, x.opt.Dir); err != nil {
			return FileInfo{}, err
		}
		if err := segment.SyncDir(fs, fs.PathDir(x.opt.Dir)); err != nil {
			return FileInfo{}, err
		}
	}
	f.saved = head.count
	f.letGo(newest)
	return FileInfo{Name: f.name, Count: head.count, Last: head.lastOffset}, nil
}

// writeEntries writes the entries that are in memory only.
func (f *file) writeEntries() error {
	x := f.index
	x.mu.RLock()
	from, to := f.flushed, f.head.count
	data := f.tail[int(from-f.first)*entrySize : int(to-f.first)*entrySize]
	x.mu.RUnlock()
	if from == to {
		return nil
	}
	if err := f.WriteAt(data, f.entryAt(from)); err != nil {
		return err
	}
	x.mu.Lock()
	f.flushed = to
	f.tail = append([]byte(nil), f.tail[int(to-f.first)*entrySize:]...)
	f.first = to
	x.mu.Unlock()
	return nil
}

// flushPages is how many pages are copied under the lock and written at a time.
const flushPages = 64

// writeSlots writes the dirty pages, those side by side together. Before each write the
// entries that the pages speak of are written, so that after a process crash no slot
// leads to nothing.
func (f *file) writeSlots() error {
	x := f.index
	x.mu.Lock()
	dirty := f.dirty
	f.dirty = nil
	x.mu.Unlock()
	set := make([]bool, len(f.pages))
	for _, i := range dirty {
		set[i] = true
	}
	buf := make([]byte, 0, flushPages*pageSlots*slotSize)
	for i := 0; i < len(set); {
		if !set[i] {
			i++
			continue
		}
		start := i
		buf = buf[:0]
		x.mu.Lock()
		for ; i < len(set) && set[i] && i-start < flushPages; i++ {
			f.pages[i].dirty = false
			for _, v := range f.pages[i].slots {
				buf = be.AppendUint32(buf, uint32(v))
			}
		}
		x.mu.Unlock()
		n := min(len(buf), (x.opt.Slots-start*pageSlots)*slotSize)
		err := f.writeEntries()
		if err == nil {
			err = f.WriteAt(buf[:n], f.slotAt(start*pageSlots))
		}
		if err != nil {
			f.markDirty(set, start)
			return err
		}
	}
	return nil
}

// markDirty puts back the pages from start on that were not written.
func (f *file) markDirty(set []bool, start int) {
	x := f.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := start; i < len(set); i++ {
		if !set[i] {
			continue
		}
		// A page that became dirty anew meanwhile is in the list already.
		if p := f.pages[i]; !p.dirty || !contains(f.dirty, int32(i)) {
			p.dirty = true
			f.dirty = append(f.dirty, int32(i))
		}
	}
}

func contains(list []int32, v int32) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// letGo drops the slots of a file that is full from memory.
func (f *file) letGo(newest bool) {
	if newest {
		return
	}
	x := f.index
	x.mu.Lock()
	if len(f.dirty) == 0 {
		f.pages = nil
	}
	x.mu.Unlock()
}

// repairSlots looks through the slots after an unclean stop. A slot may lead to an entry
// that the header does not count; it is led back along the chain to one that counts.
// Where that chain makes no sense all slots are made anew from the entries.
func (f *file) repairSlots() error {
	count := f.head.count
	for i := range f.pages {
		p, err := f.page(i * pageSlots)
		if err != nil {
			return err
		}
		touched := false
		for j, v := range p.slots {
			slot := i*pageSlots + j
			for v >= count || v < 0 {
				if v < 0 || int(v) >= f.index.opt.Entries {
					return f.rebuildSlots()
				}
				e, err := f.readEntry(v)
				if err != nil {
					return err
				}
				if e.prev >= v || e.hash < 0 || int(e.hash)%f.index.opt.Slots != slot {
					return f.rebuildSlots()
				}
				v = e.prev
			}
			if v != p.slots[j] {
				p.slots[j] = v
				touched = true
			}
		}
		if touched {
			p.dirty = true
			f.dirty = append(f.dirty, int32(i))
			f.saved = 0
		} else {
			f.pages[i] = nil
		}
	}
	return nil
}

// rebuildSlots makes all slots from the entries that count.
func (f *file) rebuildSlots() error {
	f.dirty = nil
	for i := range f.pages {
		f.pages[i] = &page{dirty: true}
		f.dirty = append(f.dirty, int32(i))
	}
	f.saved = 0
	buf := make([]byte, 4096*entrySize)
	for n := int32(1); n < f.head.count; {
		m := min(f.head.count-n, 4096)
		if _, err := f.ReadAt(buf[:m*entrySize], f.entryAt(n)); err != nil {
			return err
		}
		for i := range m {
			e := decodeEntry(buf[i*entrySize:])
			if e.hash < 0 {
				continue
			}
			slot := int(e.hash) % f.index.opt.Slots
			f.pages[slot/pageSlots].slots[slot%pageSlots] = n + i
		}
		n += m
	}
	return nil
}
