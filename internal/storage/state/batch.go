package state

import "github.com/cockroachdb/pebble/v2"

// Batch is a set of writes that take effect together. It is used once: whoever commits it
// gives it away.
type Batch struct {
	pb       *pebble.Batch
	afterLog bool
}

// NewBatch returns an empty batch.
func (d *DB) NewBatch() *Batch { return &Batch{pb: d.p.NewBatch()} }

// Put sets key to value. Both are copied.
func (b *Batch) Put(s Space, key, value []byte) {
	op := b.pb.SetDeferred(1+len(key), len(value))
	op.Key[0] = byte(s)
	copy(op.Key[1:], key)
	copy(op.Value, value)
	_ = op.Finish() // fails for indexed batches only, which these are not
}

// Delete removes key if it is there.
func (b *Batch) Delete(s Space, key []byte) {
	op := b.pb.DeleteDeferred(1 + len(key))
	op.Key[0] = byte(s)
	copy(op.Key[1:], key)
	_ = op.Finish()
}

// DeleteRange removes all keys of the space from lower on and before upper. It is one write
// however many they are, and makes every read of the space a little slower until it is merged.
func (b *Batch) DeleteRange(s Space, lower, upper []byte) {
	_ = b.pb.DeleteRange(spaced(s, lower), spaced(s, upper), nil)
}

// DeletePrefix removes all keys of the space that begin with prefix. It is meant for rare
// events, such as the end of a topic.
func (b *Batch) DeletePrefix(s Space, prefix []byte) {
	lower := spaced(s, prefix)
	_ = b.pb.DeleteRange(lower, after(lower), nil)
}

// AfterLog says that the batch ends something whose successor is in the log: what the log
// has now becomes durable before the batch is written. That the log is synced first is not
// enough: what was written here and not synced may be on the disk all the same, and what was
// written there not.
func (b *Batch) AfterLog() { b.afterLog = true }

// Empty reports whether the batch holds no writes.
func (b *Batch) Empty() bool { return b.pb.Empty() }

// Discard gives an unused batch back.
func (b *Batch) Discard() { _ = b.pb.Close() }
