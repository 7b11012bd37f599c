package keyindex

import "fmt"

// Check walks all files, calls visit with each entry, and reports the first chain that
// makes no sense. An entry that no chain leads to counts as missing and is not visited.
func (x *Index) Check(visit func(hash int32, offset int64)) error {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	x.mu.RLock()
	files := append([]*file(nil), x.mu.files...)
	x.mu.RUnlock()
	for _, f := range files {
		if err := f.check(visit); err != nil {
			return fmt.Errorf("key index %s: %w", f.name, err)
		}
	}
	return nil
}

func (f *file) check(visit func(hash int32, offset int64)) error {
	for slot := range f.index.opt.Slots {
		f.index.mu.RLock()
		v := f.viewLocked(int32(slot))
		f.index.mu.RUnlock()
		n := v.slot
		if n < 0 {
			var b [slotSize]byte
			if _, err := f.ReadAt(b[:], f.slotAt(slot)); err != nil {
				return err
			}
			n = int32(be.Uint32(b[:]))
		}
		for n != 0 {
			if n < 0 || n >= v.head.count {
				return fmt.Errorf("slot %d leads to entry %d of %d", slot, n, v.head.count)
			}
			e, err := v.entry(n)
			if err != nil {
				return err
			}
			if int(e.hash)%f.index.opt.Slots != slot || e.prev >= n || e.offset < v.head.firstOffset || e.offset > v.head.lastOffset {
				return fmt.Errorf("entry %d of slot %d makes no sense: %+v", n, slot, e)
			}
			visit(e.hash, e.offset)
			n = e.prev
		}
	}
	return nil
}
