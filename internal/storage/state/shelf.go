package state

// Shelf is one keyspace for an owner below this package, which knows neither the database
// nor its batches.
type Shelf struct {
	d *DB
	s Space
}

// Shelf returns the keyspace s.
func (d *DB) Shelf(s Space) *Shelf { return &Shelf{d, s} }

// Get returns a copy of the row at key; none when there is none.
func (h *Shelf) Get(key []byte) ([]byte, error) {
	row, _, err := h.d.Get(h.s, key)
	return row, err
}

// Scan is DB.Scan.
func (h *Shelf) Scan(prefix []byte, each func(key, row []byte) error) error {
	return h.d.Scan(h.s, prefix, each)
}

// Write commits what f puts and removes, all of it together.
func (h *Shelf) Write(f func(put func(key, row []byte), remove, removeAll func(key []byte))) error {
	b := h.d.NewBatch()
	f(func(key, row []byte) { b.Put(h.s, key, row) },
		func(key []byte) { b.Delete(h.s, key) },
		func(prefix []byte) { b.DeletePrefix(h.s, prefix) })
	if b.Empty() {
		b.Discard()
		return nil
	}
	return h.d.Commit(b)
}

// Sync makes durable what was written.
func (h *Shelf) Sync() error { return h.d.Sync() }
